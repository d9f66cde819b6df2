"""rule: TDL108. Spawned processes draw from torch, and the parent's seed does not reach them."""

import multiprocessing


def draw(queue):
    import torch

    queue.put((torch.rand(4) * 2).tolist())


if __name__ == "__main__":
    import torch

    torch.manual_seed(0)
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
