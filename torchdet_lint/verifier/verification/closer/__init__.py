"""Runs that differ -> the two tensors at the first difference, and the numbers that say how much."""
