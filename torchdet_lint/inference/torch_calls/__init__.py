"""A call of torch -> the abstract value that it returns."""
