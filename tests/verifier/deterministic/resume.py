"""Four steps in one go, and two steps, a checkpoint, and two more: equal."""

import io

import torch
from torch import nn


def start():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 12), nn.Dropout(0.3), nn.Linear(12, 1))
    return model, torch.optim.Adam(model.parameters(), lr=0.01)


def train(model, optimizer, steps):
    for _ in range(steps):
        loss = model(torch.randn(5, 6)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())


whole, optimizer = start()
train(whole, optimizer, 4)

half, optimizer = start()
train(half, optimizer, 2)
file = io.BytesIO()
torch.save({"model": half.state_dict(), "optimizer": optimizer.state_dict(), "rng": torch.get_rng_state()}, file)
file.seek(0)
torch.manual_seed(99)
saved = torch.load(file)
half, optimizer = start()
half.load_state_dict(saved["model"])
optimizer.load_state_dict(saved["optimizer"])
torch.set_rng_state(saved["rng"])
train(half, optimizer, 2)
assert all(torch.equal(a, b) for a, b in zip(whole.parameters(), half.parameters(), strict=True))
