"""A place of a program -> the calls that lead there, and the seed that the program has by then."""
