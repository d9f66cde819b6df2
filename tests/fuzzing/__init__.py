"""Inputs made at random, what must hold for every one of them, and the way from a failure to a small file."""
