"""Programs -> the functions that they run without gradients only: calls, and the objects that these are given."""
