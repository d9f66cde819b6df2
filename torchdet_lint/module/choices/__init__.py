"""What stands above a choice in a function -> which of its arms run."""
