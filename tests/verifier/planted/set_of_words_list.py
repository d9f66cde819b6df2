"""rule: TDL305. A vocabulary made with `list(set(...))`."""

import torch

words = "the quick brown fox jumps over the lazy dog and the cat".split()
vocabulary = list(set(words))
print(torch.tensor([vocabulary.index(word) for word in words]).tolist())
