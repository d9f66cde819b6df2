"""Memory that is allocated without a value -> the reads of what nothing wrote."""
