"""What is changed about live objects, where in the user's code, and how the processes below are told."""
