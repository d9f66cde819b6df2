"""The words behind each command of the verifier -> what it does, and its exit status."""
