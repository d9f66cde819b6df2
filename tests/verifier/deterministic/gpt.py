"""A small transformer that predicts the next token: attention, dropout, AdamW, clipped gradients."""

import hashlib

import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(0.1))

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        attended = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.norm2(x))


torch.manual_seed(0)
tokens, places = nn.Embedding(64, 32), nn.Parameter(torch.randn(16, 32) * 0.02)
body = nn.Sequential(Layer(32, 4), Layer(32, 4), nn.LayerNorm(32))
parameters = [*tokens.parameters(), places, *body.parameters()]
optimizer = torch.optim.AdamW(parameters, lr=1e-3)
for _ in range(3):
    text = torch.randint(0, 64, (4, 17))
    logits = body(tokens(text[:, :-1]) + places) @ tokens.weight.T
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(parameters, 1.0)
    optimizer.step()
    print(loss.item())
print(hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in parameters)).hexdigest())
