"""Orders that luck decides: of files, of sets, of completion; and `hash()`, which the interpreter salts."""
