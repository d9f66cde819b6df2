"""rule: TDL302. A subclass of the loader, arguments by position."""

import torch


class Loader(torch.utils.data.DataLoader):
    def __init__(self, rows):
        super().__init__(rows, 8, True)


print([batch.tolist() for batch in Loader(torch.arange(64))])
