"""The table of ops and the calls of a file -> the calls that vary."""
