"""The objects that programs make -> what becomes of them."""
