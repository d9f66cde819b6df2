"""`rules/*.toml` -> typed knowledge."""
