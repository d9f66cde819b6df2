"""Options -> exit status."""
