"""rule: TDL108. Spawned processes draw, and the parent's seed does not reach them."""

import multiprocessing
import random


def draw(queue):
    import numpy as np

    queue.put((random.random(), np.random.rand()))


if __name__ == "__main__":
    import numpy as np
    import torch

    random.seed(0)
    np.random.seed(0)
    context = multiprocessing.get_context("spawn")
    drawn = []
    for _ in range(2):
        queue = context.SimpleQueue()
        process = context.Process(target=draw, args=(queue,))
        process.start()
        drawn.append(queue.get())
        process.join()
    print((torch.tensor(drawn) * 2).tolist())
    assert drawn[0] != drawn[1]
