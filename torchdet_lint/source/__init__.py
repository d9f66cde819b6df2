"""Paths -> files, text, cells, modules."""
