"""The text of one file -> its scopes, what its names stand for, and the events of its functions."""
