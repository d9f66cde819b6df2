"""A run as it trains -> digests of its state at each step, in a file; two such files -> the first step that differs."""
