"""Kernels of Triton and numba -> their atomic operations that add up in the order of arrival."""
