"""The statements of a function -> what of it reaches no result: random numbers, and times that are printed."""
