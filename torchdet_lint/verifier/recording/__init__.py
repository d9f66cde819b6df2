"""A running program -> a trace of its ops."""
