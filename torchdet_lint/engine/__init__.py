"""Files x rules -> findings."""
