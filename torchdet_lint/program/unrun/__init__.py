"""Files of a project -> what of them no program runs."""
