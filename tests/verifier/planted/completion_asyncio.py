"""rule: TDL306. Results of coroutines in the order in which they finish."""

import asyncio

import torch


async def work(number):
    await asyncio.sleep(0)
    return number


async def main():
    return [await result for result in asyncio.as_completed([work(number) for number in range(20)])]


print(torch.tensor(asyncio.run(main())).tolist())
