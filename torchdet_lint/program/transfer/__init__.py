"""The events of one function -> its steps: what each call draws, seeds and switches, and what it calls in turn."""
