"""In a measuring process: one program, run again and again, and its bits compared."""
