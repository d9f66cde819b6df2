"""`torchdet-lint probe`: every op of the catalogue, run again and again on this machine, and its bits compared."""
