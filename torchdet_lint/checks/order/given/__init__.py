"""A file -> the sets that it goes through and does not make: its parameters, what other files give."""
