"""rule: TDL305. Objects of the program's own in a set: by address."""

import torch


class Sample:
    def __init__(self, number):
        self.number = number


samples = {Sample(number) for number in range(64)}
print(torch.tensor([sample.number for sample in samples]).tolist())
