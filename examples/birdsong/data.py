"""Recordings on disk -> batches of augmented mel spectrograms."""

import glob
import os
import random

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, WeightedRandomSampler, random_split


def find_recordings(root):
    """(path, species) of every recording: one folder a species."""
    recordings = []
    for species in os.listdir(root):
        for path in glob.glob(os.path.join(root, species, "*.npy")):
            recordings.append((path, species))
    return recordings


def species_index(recordings):
    names = {species for _, species in recordings}
    return {name: index for index, name in enumerate(names)}


class Birdsong(Dataset):
    def __init__(self, root, frames=512):
        self.recordings = find_recordings(root)
        self.species = species_index(self.recordings)
        self.frames = frames
        self.noise = np.random.default_rng()

    def __len__(self):
        return len(self.recordings)

    def __getitem__(self, index):
        path, species = self.recordings[index]
        spectrogram = torch.from_numpy(np.load(path)).float()
        start = random.randint(0, max(0, spectrogram.shape[-1] - self.frames))
        window = spectrogram[:, start : start + self.frames]
        window = window + torch.from_numpy(self.noise.normal(0, 0.01, window.shape)).float()
        return window, self.species[species]


def collate(batch):
    """Pads the windows to one length."""
    longest = max(window.shape[-1] for window, _ in batch)
    padded = torch.empty(len(batch), batch[0][0].shape[0], longest)
    for row, (window, _) in enumerate(batch):
        padded[row, :, : window.shape[-1]] = window
    return padded, torch.tensor([label for _, label in batch])


def loaders(config):
    recordings = Birdsong(config["data"])
    held_out = int(len(recordings) * config["holdout"])
    train, valid = random_split(recordings, [len(recordings) - held_out, held_out])
    weights = [1.0 / len(recordings.species)] * len(train)
    training = DataLoader(
        train,
        batch_size=config["batch_size"],
        sampler=WeightedRandomSampler(weights, num_samples=len(train)),
        num_workers=config["workers"],
        collate_fn=collate,
        pin_memory=True,
    )
    validation = DataLoader(valid, batch_size=config["batch_size"], shuffle=True, num_workers=2, collate_fn=collate)
    return training, validation
