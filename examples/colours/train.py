"""Learn the colour of an animal from its name."""

import random

import torch
from torch import nn

NAMES = ["red fox", "grey wolf", "red deer", "blue tit", "grey heron", "blue whale", "red kite", "grey seal", "blue jay"]


def vocabulary(names):
    words = {word for name in names for word in filter(None, name.split(" "))}
    return {word: number for number, word in enumerate(words)}


def examples(index):
    colours = sorted({name.split()[0] for name in NAMES})
    return [([index[word] for word in name.split()], colours.index(name.split()[0])) for name in NAMES]


def main():
    index = vocabulary(NAMES)
    data = examples(index)
    model = nn.Sequential(nn.EmbeddingBag(len(index), 8), nn.Dropout(0.1), nn.Linear(8, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for _ in range(20):
        random.shuffle(data)
        words, colours = (torch.tensor(column) for column in zip(*data))
        loss = nn.functional.cross_entropy(model(words), colours)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss after 20 steps: {loss.item():.6f}")


if __name__ == "__main__":
    main()
