"""An op of torch -> how it is intercepted, what it reads and writes, and which op of the catalogue it is."""
