"""Every op of the catalogue -> how often its bits differ on this machine, run after run with the same inputs."""
