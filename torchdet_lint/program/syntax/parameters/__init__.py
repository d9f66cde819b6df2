"""A parameter of a function -> what it is where it is read, and whether anybody passes it."""
