"""The classifier: convolutions over the spectrogram, a recurrent layer over time, attention pooling."""

import torch
import torch.nn.functional as F
from torch import nn


class Front(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.pad = nn.ReflectionPad2d(1)
        self.first = nn.Conv2d(1, width, 3)
        self.second = nn.Conv2d(width, width, 3, padding=1)

    def forward(self, spectrogram):
        hidden = F.gelu(self.first(self.pad(spectrogram.unsqueeze(1))))
        hidden = F.gelu(self.second(hidden))
        return F.interpolate(hidden, scale_factor=0.5, mode="bilinear", align_corners=False)


class AttentionPool(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.query = nn.Parameter(torch.zeros(1, 1, width))

    def forward(self, hidden):
        query = self.query.expand(hidden.shape[0], -1, -1)
        return F.scaled_dot_product_attention(query, hidden, hidden).squeeze(1)


class Classifier(nn.Module):
    def __init__(self, species, bands=64, width=64):
        super().__init__()
        self.front = Front(width)
        self.recurrent = nn.GRU(width * bands // 2, width, batch_first=True, bidirectional=True)
        self.pool = AttentionPool(2 * width)
        self.head = nn.Linear(2 * width, species)

    def forward(self, spectrogram):
        hidden = self.front(spectrogram).flatten(1, 2).transpose(1, 2)
        hidden, _ = self.recurrent(hidden)
        return self.head(self.pool(hidden))


def errors_by_species(wrong, labels, species):
    """How much each species contributes to the loss."""
    totals = torch.zeros(species, device=wrong.device)
    totals.index_add_(0, labels, wrong)
    return totals / torch.bincount(labels, weights=torch.ones_like(wrong), minlength=species).clamp(min=1)
