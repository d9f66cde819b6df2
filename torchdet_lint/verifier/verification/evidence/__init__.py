"""The linter's findings and a verified program -> what the runs say of each finding."""
