"""rule: TDL108. A spawned process draws from torch, and the parent's seed does not reach it."""

import multiprocessing


def draw(queue):
    import torch

    queue.put((torch.rand(4) * 2).tolist())


if __name__ == "__main__":
    import torch

    torch.manual_seed(0)
    context = multiprocessing.get_context("spawn")
    queue = context.SimpleQueue()
    process = context.Process(target=draw, args=(queue,))
    process.start()
    drawn = torch.tensor(queue.get())
    process.join()
    print((drawn * 2).tolist())
    assert not torch.equal(drawn, torch.rand(4) * 2)
