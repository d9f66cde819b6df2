"""rule: TDL306. Results of threads in the order in which they finish."""

import secrets
import threading
import time

import torch

done = []


def work(number):
    time.sleep(secrets.randbelow(30) / 1000)
    done.append(number * number)


threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(torch.tensor(done).tolist())
