"""The tables of names in `rules/facts/` -> one struct each, with its patterns compiled."""
