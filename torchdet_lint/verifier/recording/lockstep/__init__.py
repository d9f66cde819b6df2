"""Run A's values <-> run B, which goes on with them where its own differ: `verify --mode lockstep`."""
