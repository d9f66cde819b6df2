"""The codes of rules -> runtime fixes: what each changes in a running program."""
