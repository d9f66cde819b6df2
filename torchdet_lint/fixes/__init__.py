"""Changes -> edits -> bytes, and the patch that says the same."""
