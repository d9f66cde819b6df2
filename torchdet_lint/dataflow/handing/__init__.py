"""A call -> the constructors and functions of the project that hand its arguments on."""
