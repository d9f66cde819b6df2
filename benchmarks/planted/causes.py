"""What makes two runs differ -> the lines of a function that does so, and the rules that are right for it."""

from __future__ import annotations

from typing import NamedTuple


class Cause(NamedTuple):
    """One cause: the `body` of a function that returns a tensor, and the `rules` of which any is right for it.

    `unseeded` is the generator that the program then leaves unseeded. A `rare` one shows in one run of several alone,
    which `rarely()` counts.
    """

    name: str
    rules: tuple[str, ...]
    body: str
    unseeded: str = ""
    rare: bool = False


_THREADS = """torch.set_num_threads(4)
index = torch.arange(100_000) * 7919 % 20_000
values = torch.arange(100_000).sin()
"""
_FOLDER = """folder = pathlib.Path(tempfile.mkdtemp(prefix="planted-"))
for number in range(12):
    (folder / f"{number}.txt").touch()
"""

CAUSES = [
    Cause("torch-draw", ("TDL101",), "return torch.randn(8)", "torch"),
    Cause("torch-dropout", ("TDL101",), "return torch.nn.functional.dropout(torch.ones(64), 0.5)", "torch"),
    Cause("torch-permutation", ("TDL101",), "return torch.arange(8.0)[torch.randperm(8)]", "torch"),
    Cause("numpy-draw", ("TDL102",), "return torch.from_numpy(np.random.rand(8)).float()", "numpy"),
    Cause("numpy-order", ("TDL102",), "return torch.tensor(np.random.permutation(8)).float()", "numpy"),
    Cause("python-draw", ("TDL103",), "return torch.tensor([random.random() for _ in range(8)])", "python"),
    Cause("python-index", ("TDL103",), "return torch.arange(64.0)[random.randrange(64)].reshape(1)", "python"),
    Cause(
        "python-shuffle",
        ("TDL103",),
        "order = list(range(16))\nrandom.shuffle(order)\nreturn torch.tensor(order).float()",
        "python",
    ),
    Cause("generator-numpy", ("TDL104",), "rng = np.random.default_rng()\nreturn torch.tensor(rng.random(8)).float()"),
    Cause("generator-state", ("TDL104",), "rng = np.random.RandomState()\nreturn torch.tensor(rng.rand(8)).float()"),
    Cause(
        "generator-python",
        ("TDL104",),
        "rng = random.Random()\nreturn torch.tensor([rng.random() for _ in range(8)])",
    ),
    Cause(
        "clock-seed",
        ("TDL105",),
        "source = torch.Generator().manual_seed(time.time_ns() % 2**31)\nreturn torch.rand(8, generator=source)",
    ),
    Cause(
        "date-seed",
        ("TDL105",),
        "rng = random.Random(datetime.datetime.now().microsecond)\nreturn torch.tensor([rng.random()])",
    ),
    Cause(
        "system-seed",
        ("TDL105",),
        'rng = np.random.default_rng(int.from_bytes(os.urandom(4), "big"))\nreturn torch.tensor(rng.random(8)).float()',
    ),
    Cause("uuid-seed", ("TDL105",), "rng = random.Random(uuid.uuid4().int)\nreturn torch.tensor([rng.random()])"),
    Cause("process-seed", ("TDL105",), "rng = random.Random(os.getpid())\nreturn torch.tensor([rng.random()])"),
    Cause("secret-seed", ("TDL105",), "rng = random.Random(secrets.randbits(32))\nreturn torch.tensor([rng.random()])"),
    Cause(
        "set-of-words",
        ("TDL305",),
        'words = {"cat", "dog", "horse", "cow", "sheep", "goat", "pig", "hen"}\n'
        "return torch.tensor([float(len(word) + ord(word[0])) for word in words])",
    ),
    Cause(
        "set-of-words-counted",
        ("TDL305",),
        'number = {word: place for place, word in enumerate(set("a quick brown fox jumps over lazy dogs".split()))}\n'
        'return torch.tensor([float(number[word]) for word in ("quick", "brown", "fox", "jumps", "lazy", "dogs")])',
    ),
    Cause(
        "set-of-objects",
        ("TDL305",),
        "layers = {torch.nn.Identity() for _ in range(12)}\nnames = {id(one): n for n, one in enumerate(layers)}\n"
        "kept = sorted(names)\nreturn torch.tensor([float(names[one]) for one in kept])",
    ),
    Cause("hash", ("TDL601",), 'return torch.tensor([float(hash(word) % 97) for word in ("train", "test", "valid")])'),
    Cause(
        "files-listdir",
        ("TDL304",),
        _FOLDER + "names = os.listdir(folder)\nreturn torch.tensor([float(name[:-4]) for name in names])",
    ),
    Cause(
        "files-glob",
        ("TDL304",),
        _FOLDER + 'return torch.tensor([float(pathlib.Path(name).stem) for name in glob.glob(f"{folder}/*.txt")])',
    ),
    Cause(
        "files-iterdir",
        ("TDL304",),
        _FOLDER + "return torch.tensor([float(path.stem) for path in folder.iterdir()])",
    ),
    Cause(
        "completion-futures",
        ("TDL306",),
        "with concurrent.futures.ThreadPoolExecutor(4) as pool:\n"
        "    tasks = [pool.submit(pow, number, 2) for number in range(40)]\n"
        "    done = [task.result() for task in concurrent.futures.as_completed(tasks)]\n"
        "return torch.tensor(done).float()",
    ),
    Cause(
        "completion-pool",
        ("TDL306",),
        "with multiprocessing.pool.ThreadPool(4) as pool:\n"
        "    done = list(pool.imap_unordered(math.sqrt, range(40)))\nreturn torch.tensor(done)",
    ),
    Cause(
        "completion-asyncio",
        ("TDL306",),
        "async def one(number):\n    await asyncio.sleep(0)\n    return number\n\n"
        "async def all_of_them():\n"
        "    return [await done for done in asyncio.as_completed([one(n) for n in range(40)])]\n\n"
        "return torch.tensor(asyncio.run(all_of_them())).float()",
    ),
    Cause(
        "op-index-put",
        ("TDL402",),
        _THREADS + "return torch.zeros(20_000).index_put_((index,), values, accumulate=True)",
    ),
    Cause(
        "op-index-backward",
        ("TDL403",),
        _THREADS + "table = torch.zeros(20_000, requires_grad=True)\n(table[index] * values).sum().backward()\n"
        "return table.grad",
    ),
    Cause("unwritten", ("TDL501",), "return torch.empty(5_000).nan_to_num(0.5, 0.5, 0.5).clamp(-1, 1)"),
    Cause(
        "unwritten-part",
        ("TDL501",),
        "buffer = torch.empty(5_000)\nbuffer[:4_000] = 1\nreturn (buffer * 2).nan_to_num(0.5, 0.5, 0.5).clamp(-1, 1)",
    ),
    Cause(
        "unwritten-numpy",
        ("TDL501",),
        "buffer = np.empty(5_000, dtype=np.int64)\nbuffer[:4_000] = 1\nreturn torch.from_numpy(buffer % 97).float()",
    ),
    Cause(
        "threads-append",
        ("TDL306", "TDL307"),
        "done = []\n\ndef work(number):\n    time.sleep(secrets.randbelow(30) / 1000)\n"
        "    done.append(float(number))\n\n"
        "threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]\n"
        "for thread in threads:\n    thread.start()\nfor thread in threads:\n    thread.join()\n"
        "return torch.tensor(done)",
    ),
    Cause(
        "threads-update",
        ("TDL306", "TDL307"),
        "shared = torch.ones(8)\n\ndef work(number):\n    time.sleep(secrets.randbelow(30) / 1000)\n"
        "    shared.mul_(number).add_(1)\n\n"
        "threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]\n"
        "for thread in threads:\n    thread.start()\nfor thread in threads:\n    thread.join()\nreturn shared.clone()",
    ),
    Cause(
        "rare-completion",
        ("TDL306",),
        "late = rarely()\n\ndef work(number):\n    time.sleep(0.2 if late and not number else 0.02 * number)\n"
        "    return number\n\n"
        "with concurrent.futures.ThreadPoolExecutor(4) as pool:\n"
        "    tasks = [pool.submit(work, number) for number in range(4)]\n"
        "    done = [task.result() for task in concurrent.futures.as_completed(tasks)]\n"
        "return torch.tensor(done).float()",
        rare=True,
    ),
    Cause(
        "rare-draw",
        ("TDL104",),
        "values = np.ones(8)\nif rarely():\n    values = np.random.default_rng().random(8)\n"
        "return torch.tensor(values).float()",
        rare=True,
    ),
    Cause(
        "rare-race",
        ("TDL306", "TDL307"),
        "shared = torch.ones(8)\nlate = rarely()\n\ndef work(number):\n"
        "    time.sleep(0.2 if late and not number else 0.02 * number)\n    shared.mul_(number + 1).add_(1)\n\n"
        "threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]\n"
        "for thread in threads:\n    thread.start()\nfor thread in threads:\n    thread.join()\nreturn shared.clone()",
        rare=True,
    ),
]
