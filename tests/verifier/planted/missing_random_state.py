"""rule: TDL107. scikit-learn's rule, `random_state=None`: draw from NumPy's global generator."""

import numpy as np
import torch


def check_random_state(seed):
    return np.random.mtrand._rand if seed is None else np.random.RandomState(seed)


def train_test_split(rows, test_size, random_state=None):
    order = check_random_state(random_state).permutation(len(rows))
    return rows[order[test_size:]], rows[order[:test_size]]


train, test = train_test_split(torch.arange(50), 10)
print(train.tolist(), test.tolist())
