"""A node of a file -> where it stands in the text."""
