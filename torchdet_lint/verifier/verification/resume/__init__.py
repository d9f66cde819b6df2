"""A program that saves and resumes -> whether the resumed run is the uninterrupted one, and what it has lost."""
