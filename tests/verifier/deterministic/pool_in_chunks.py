"""Results that come unordered and in chunks, and are sorted before they are used."""

import multiprocessing

import torch


def square(number):
    return number * number


if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(2) as pool:
        squares = sorted(pool.imap_unordered(square, range(100), chunksize=10))
    print(torch.tensor(squares).sum().item())
