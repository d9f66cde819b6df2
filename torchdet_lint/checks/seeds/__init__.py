"""Calls that make or seed a generator -> those that differ in every run (TDL104, TDL105, TDL107)."""
