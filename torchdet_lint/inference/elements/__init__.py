"""What a list, a set or a tensor holds -> what all of its elements are: distinct, whole, text, numbers."""
