"""Sorted files, a set of ints, a set that is only tested for membership, results keyed by their number."""

import pathlib
import tempfile
from concurrent.futures import ThreadPoolExecutor, as_completed

import torch

torch.manual_seed(0)
with tempfile.TemporaryDirectory() as folder:
    for number in range(10):
        pathlib.Path(folder, f"{number}.txt").write_text(str(number))
    rows = [int(path.read_text()) for path in sorted(pathlib.Path(folder).iterdir())]
stop_words = {"the", "a", "of"}
kept = [word for word in "the weight of a feather".split() if word not in stop_words]
results = torch.zeros(20)
with ThreadPoolExecutor(4) as pool:
    futures = {pool.submit(pow, number, 2): number for number in range(20)}
    for future in as_completed(futures):
        results[futures[future]] = future.result()
print((torch.tensor(rows) * torch.rand(10)).tolist(), kept, results.tolist(), sum({3, 1, 2}))
