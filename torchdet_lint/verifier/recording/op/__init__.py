"""One op -> where it stands in the program, and digests of the memory that it reads and writes."""
