"""An import that a fix needs -> the edit that adds it: a line of its own, or a name in one that is there."""
