"""Orders that luck decides, of files, sets and completion, and salted hashes -> those that reach a result."""
