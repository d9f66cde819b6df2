"""In a measuring process: one program -> its bits, compared run after run."""
