"""A measurement -> what is printed: for a screen, a wiki, the catalogue, and beside another one."""
