"""An LSTM over packed sequences of varying length."""

import hashlib

import torch
from torch import nn

torch.manual_seed(0)
embed, lstm, head = nn.Embedding(50, 16), nn.LSTM(16, 24, num_layers=2, dropout=0.2, batch_first=True), nn.Linear(24, 2)
parameters = [*embed.parameters(), *lstm.parameters(), *head.parameters()]
optimizer = torch.optim.Adam(parameters)
for _ in range(3):
    lengths = torch.randint(3, 12, (6,))
    rows = [torch.randint(0, 50, (int(length),)) for length in lengths]
    packed = nn.utils.rnn.pack_padded_sequence(
        embed(nn.utils.rnn.pad_sequence(rows, batch_first=True)), lengths, batch_first=True, enforce_sorted=False
    )
    _, (hidden, _) = lstm(packed)
    loss = nn.functional.cross_entropy(head(hidden[-1]), torch.randint(0, 2, (6,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
print(hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in parameters)).hexdigest())
