"""A program as it runs -> what is noted of it besides its ops: progress, values at one op, lines that it reached."""
