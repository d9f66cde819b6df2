"""Summaries of all files -> what an entry point reaches, draws, seeds and switches."""
