"""A program -> a verdict, a cause and a cure, from pairs of runs."""
