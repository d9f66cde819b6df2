"""A command -> its processes, each started with what the parent asks for."""
