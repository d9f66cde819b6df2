"""The runtime fixes: what each changes in a running program."""
