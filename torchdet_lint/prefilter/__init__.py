"""Text -> the statements that are worth a parse."""
