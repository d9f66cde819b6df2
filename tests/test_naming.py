"""Random numbers that only name something: a file, a folder, a port, a run, as two runs have to."""

from __future__ import annotations

import textwrap

import pytest

from torchdet_lint.api import lint_source

ABOVE = """\
import argparse
import os
import random
from multiprocessing import Process
from pathlib import Path

import numpy as np
import torch
import wandb
from PIL import Image

from kept import store

torch.manual_seed(0)
parser = argparse.ArgumentParser()

"""


NAMES = [
    """\
parser.add_argument("-o", "--out-dir", default=f"runs/{random.random()}")
parser.add_argument("--tag", default=random.randint(0, 9))
args = parser.parse_args()
np.save(f"{args.tag}.npy", net)
""",
    """\
if not os.path.exists(path := f"{random.random()}"):
    os.makedirs(path)
""",
    'path = Path(f"{random.random()}/a.pt")\npath.parent.mkdir()\npath.touch()\nprint(path.exists(), path.name)',
    "path = f'{random.random()}'\nos.makedirs(path)\nprint(Path(path).exists())\nos.remove(path)",
    "tag = tag + 1 if fresh else random.randint(0, 9)\nnp.save(f'{tag}.npy', net)",
    "def tag():\n    return f'{tag()}{random.random()}'\n\nnp.save(tag(), net)",
    """
class Put:
    def tag(self):
        return random.random()

    def put(self):
        np.save(f'{self.tag()}.npy', net)

Put().put()
""",
    """
def run():
    def inner():
        torch.save(net, tag)

    tag = f'{random.random()}'
    inner()

run()
""",
    """
async def run():
    tag = await f'{random.random()}'
    np.save(tag, net)

run()
""",
    "np.save((lambda: 3, f'{random.random()}')[1], net)",
    'torch.save(net, f"{random.random()}.pt")',
    'torch.save(net, "net_%d.pt" % random.randint(0, 99))',
    'torch.save(net, "net_{}_{}.pt".format(3, random.randint(0, 99)))',
    'torch.save(net, "net_" + str(random.randint(0, 99)) + ".pt")',
    """\
n = random.randint(0, 99)
out = os.path.join("runs", str(n))
os.makedirs(out)
torch.save(net, out + "/a.pt")
""",
    """\
out = Path("runs") / f"{random.random()}"
out.mkdir()
net = torch.load(out / "a.pt")
""",
    """\
path = f"{random.random()}.pt"
if not os.path.exists(path):
    torch.save(net, path)
net = torch.load(path)
""",
    """\
with open(f"{random.random()}.txt", "w") as file:
    file.write("3")
""",
    """\
with open(f"{random.random()}.txt", mode="x") as file:
    file.write("3")
""",
    'Path(f"{random.random()}.txt").write_text("3")',
    """\
with Path(f"{random.random()}.txt").open("w") as file:
    file.write("3")
""",
    """\
letters = "".join(random.choice("abc") for _ in range(8))
wandb.init(project="a", name=letters)
""",
    'wandb.init(name="abcdef"[random.randint(0, 5)])',
    """\
args.out_dir = f"runs/{random.random()}"
store(args)
""",
    'os.environ["MASTER_ADDR"] = f"localhost:{random.randint(1, 9)}"',
    """\
url = "tcp://127.0.0.1:" + str(random.randint(1, 9))
store(url)
""",
    'store(net, save_path=f"{random.random()}.pt")',
    'save_all(net, f"{random.random()}.pt")',
    """\
tag = random.randint(0, 9) if fresh else 3
print("as", tag)
np.save(f"{tag}.npy", net)
""",
    """\
tag: int = random.randint(0, 9)
tag += 1
np.save(f"{tag}.npy", net)
""",
    """\
def tag():
    return random.randint(0, 99)

np.save(f"{tag()}.npy", net)
""",
    """\
def put(x, to):
    torch.save(x, to)

put(net, f"{random.random()}.pt")
put(net, to=f"{random.random()}.pt")
""",
    """\
def path(name):
    return os.path.join("out", f"{name}{random.random()}")

def run():
    torch.save(net, path("a"))

run()
""",
    """\
class Cache:
    def __init__(self, root):
        self.tmp = f"{root}/{random.random()}"

    def put(self, x):
        torch.save(x, self.tmp)

Cache(1).put(net)
""",
    """\
class Cache:
    def __init__(self, root):
        self.root = root

    @staticmethod
    def put(x, to):
        torch.save(x, to)

cache = Cache(str(random.random()))
os.makedirs(cache.root)
cache.put(net, f"{random.random()}")
""",
    """\
def work(rank, to):
    torch.save(rank, to)

Process(target=work, args=(0, f"{random.random()}")).start()
""",
    """\
def work(rank, to):
    torch.save(rank, to)

torch.multiprocessing.spawn(work, (f"{random.random()}",), 2)
""",
    """\
def run():
    global tag
    tag = f"{random.random()}"

run()
os.mkdir(tag)
""",
]


def codes(source: str) -> list[str]:
    """The codes of what is reported of `source`, below a seed of torch."""
    return sorted({one.code for one in lint_source(ABOVE + source) if one.code.startswith("TDL10")})


@pytest.mark.parametrize("lines", NAMES)
def test_what_only_names_something_is_no_draw(lines: str) -> None:
    assert codes(f"net, fresh, args = 3, 3, store()\n{lines}\n") == []


@pytest.mark.parametrize(
    "lines",
    [
        "print(random.random())",
        "parser.add_argument('--rate', default=random.random())\nprint(parser.parse_args().rate + 1)",
        "parser.add_argument('--n', dest='tag', default=random.random())\nargs = parser.parse_args()\nprint(args.tag)",
        "if (n := random.random()) > 3:\n    np.save(f'{n}', net)",
        "n = random.choice(m)\nm.remove(n)\nnp.save(f'{n}', net)",
        "class Put:\n    pass\n\nPut(random.random()).put()",
        "def put(x):\n    torch.save(x, 'a.pt')\n\nput(net, f'{random.random()}')\nput(y=f'{random.random()}')",
        """
def run():
    n = random.random()

    def inner():
        nonlocal n
        n += 1
        store(n)

    inner()
    np.save(f'{n}', net)

run()
""",
        "n = random.random()\n"
        + "".join(f"n{i} = n{i - 1 if i else ''}\n" for i in range(60))
        + "np.save(f'{n59}', net)",
        'n = random.randint(0, 9)\nImage.open(f"a/{n}.png").save(f"b/{n}.png")',
        'image = Image.open(f"a/{random.randint(0, 9)}.png")',
        'text = open(f"a/{random.randint(0, 9)}.txt").read()',
        'text = open(f"a/{random.randint(0, 9)}.txt", mode).read()',
        'text = Path(f"a/{random.randint(0, 9)}.txt").read_text()',
        'path = f"a/{random.randint(0, 9)}"\nos.makedirs("b/" + path)\nnet = torch.load(path)',
        'path = f"a/{random.randint(0, 9)}"\ntorch.save(net, path + "/b")\nnet = torch.load(path + "/c")',
        "torch.save(random.random(), 'a.pt')",
        "torch.save(f'{random.random()}', 'a.pt')",
        'with open("a.txt", "w") as file:\n    file.write(f"{random.random()}")',
        'n = random.randint(0, 9)\ntorch.save(n + 1, f"{n}.pt")',
        'n = random.randint(0, 9)\nif n > 3:\n    torch.save(net, f"{n}.pt")',
        'for n in [random.randint(0, 9)]:\n    torch.save(net, f"{n}.pt")',
        'x = [n for n in [random.randint(0, 9)]]\ntorch.save(net, f"{x}.pt")',
        'torch.save(net, "a.pt" if random.random() < 3 else "b.pt")',
        'n = random.randint(0, 9)\nstore(n)\ntorch.save(net, f"{n}.pt")',
        'n = random.randint(0, 9)\nstore(n=n)\ntorch.save(net, f"{n}.pt")',
        'n = m[0] = random.randint(0, 9)\ntorch.save(net, f"{n}.pt")',
        "def tag():\n    return random.randint(0, 99)\n\nstore(tag)\nnp.save(f'{tag()}.npy', net)",
        "@store\ndef tag():\n    return random.randint(0, 99)\n\nnp.save(f'{tag()}.npy', net)",
        "def put(x, *to):\n    torch.save(x, to)\n\nput(net, f'{random.random()}.pt')",
        "def put(x, **to):\n    torch.save(x, **to)\n\nput(net, f=f'{random.random()}.pt')",
        "def put(x, to):\n    torch.save(x, to)\n\nput(*net, f'{random.random()}.pt')",
        "def put(x, to):\n    return x + to\n\nprint(put(net, random.random()))",
        "store(args=(f'{random.random()}',))",
        "Process(target=store, args=(f'{random.random()}',)).start()",
        "torch.save(3, open(f'{random.random()}', str(net)))\nprint(random.random().real)",
        "random.random().store()",
        "torch.save(net, open(random.random(), m))",
        "Process(store, args=(f'{random.random()}',)).start()",
        "@store\ndef put():\n    return random.random()\n\nnp.save(f'{put()}', net)",
        "np.save(f'{random.random() if net else 3}', open(f'{random.random()}'))",
        "Path(f'{random.random()}').iterdir()",
        "def put():\n    return random.random()\n\ndef put():\n    return random.random()\n\nnp.save(f'{put()}', net)",
        "kept = lambda: random.random()\nnp.save(f'{kept()}.npy', net)",
    ],
)
def test_what_reaches_more_than_a_name_is_one(lines: str) -> None:
    assert codes(f"net, mode, m = 3, store(), [3]\n{lines}\n") == ["TDL103"]


def test_a_real_draw_further_below_is_the_one_that_is_named() -> None:
    source = 'tag = random.randint(0, 9)\nos.makedirs(f"runs/{tag}")\nprint(random.choice([1, 2]))\n'
    (found,) = [one for one in lint_source(ABOVE + source) if one.code == "TDL103"]
    assert "random.choice" in found.message


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ('rng = np.random.default_rng()\ntag = rng.integers(9)\ntorch.save(3, f"é{tag}.pt")', []),
        ('torch.save(3, f"é{np.random.default_rng().integers(9)}.pt")', []),
        ('torch.save(3, f"{random.SystemRandom().randint(0, 9)}.pt")', []),
        ("rng = np.random.default_rng()\nrows = [1, 2]\nrng.shuffle(rows)\nprint(rows)", ["TDL104"]),
        ('rng = np.random.default_rng()\ntorch.save(rng.random(), f"{rng.random()}.pt")', ["TDL104"]),
        ("print(random.SystemRandom().randint(0, 9))", ["TDL105"]),
    ],
)
def test_a_generator_of_which_only_names_are_drawn_needs_no_seed(lines: str, found: list[str]) -> None:
    assert codes(f"{textwrap.dedent(lines)}\n") == found
