"""A program -> the functions of the project that seed it, whether it is ever seeded, and whether one seed fits it."""
