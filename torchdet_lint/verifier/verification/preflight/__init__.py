"""A machine before a run -> a file that says what the run will depend on; two of them -> what differs."""
