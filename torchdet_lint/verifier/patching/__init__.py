"""Live objects -> changed ones that can be put back; where the user's code is; what the processes below are told."""
