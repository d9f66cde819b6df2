"""A dictionary of options -> its entries, written in the file or in one of data."""
