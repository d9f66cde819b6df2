"""The statements of a function -> order of execution, reaching definitions, uses of a value."""
