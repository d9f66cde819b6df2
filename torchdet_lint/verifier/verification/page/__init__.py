"""A report -> one HTML page that needs nothing else."""
