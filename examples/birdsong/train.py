"""python train.py config.yaml"""

import argparse

import torch
import torch.nn.functional as F
import yaml

from data import loaders
from model import Classifier, errors_by_species
from utils import run_folder, set_seed


def train_one_epoch(model, batches, optimizer, device):
    model.train()
    for spectrogram, label in batches:
        loss = F.cross_entropy(model(spectrogram.to(device)), label.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@torch.no_grad()
def evaluate(model, batches, device, species):
    model.eval()
    losses, labels = [], []
    for spectrogram, label in batches:
        losses.append(F.cross_entropy(model(spectrogram.to(device)), label.to(device), reduction="none"))
        labels.append(label.to(device))
    return errors_by_species(torch.cat(losses), torch.cat(labels), species)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("config")
    parser.add_argument("--seed", type=int)
    arguments = parser.parse_args()
    with open(arguments.config) as stream:
        config = yaml.safe_load(stream)

    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Classifier(len(config["species"])).to(device)
    model = torch.compile(model, mode="max-autotune")
    training, validation = loaders(config)
    set_seed(arguments.seed)

    optimizer = torch.optim.AdamW(model.parameters(), lr=config["learning_rate"])
    folder = run_folder("birdsong")
    for epoch in range(config["epochs"]):
        train_one_epoch(model, training, optimizer, device)
        worst = evaluate(model, validation, device, len(config["species"])).argmax()
        print(f"epoch {epoch}: most errors in {config['species'][worst]}")
        torch.save(model.state_dict(), f"{folder}/last.pt")


if __name__ == "__main__":
    main()
