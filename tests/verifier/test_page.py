"""The page of a report: complete, self-contained, of bounded size, and only text where texts of a program are shown."""

from __future__ import annotations

import html.parser
import re
import shutil
import subprocess

import msgspec
import pytest

from torchdet_lint.verifier.comparison.losses import Loss, Losses
from torchdet_lint.verifier.comparison.picture import CELLS, Heat, Histogram, Lane, Picture
from torchdet_lint.verifier.trace import Site
from torchdet_lint.verifier.verification import outcome as out
from torchdet_lint.verifier.verification.page.page import html as page_of
from torchdet_lint.verifier.verification.report import Report

EVIL = """</script><img src=x onerror=alert(1)>"'&"""
VOID = {"meta", "br", "img", "input", "link"}


class Reader(html.parser.HTMLParser):
    """Reads a page as a browser does: open tags, attributes, and the texts in them."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.texts = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("style", "script"):
            self.texts.append(data)


def cause(**more):
    fields = dict.fromkeys(
        ("rule", "name", "message", "op", "phase", "file", "function", "forward_op", "forward_file"), ""
    )
    fields |= {"also": (), "kind": "cause", "source": "op", "line": 3, "forward_line": 0, "op_index": 7, "differing": 2}
    fields |= {"compared": 5, "inputs_equal": True, "generators": {}, "stream": "main"}
    return out.Cause(**{**fields, **more})


def report(**more):
    runs = tuple(out.RunSummary(name, "finished", 0, 1.0, 90) for name in "AB")
    fields = {"verdict": "diverged", "mode": "pair", "program": ("train.py", EVIL), "runs": runs, "causes": ()}
    fields |= {"spread": out.Spread(90, 9, "persistent", 1), "not_covered": (EVIL,), "environment": {}}
    return Report(**{**fields, **more})


ROWS = (Loss(1, 2.0, 2.0), Loss(2, 1.5, 1.25), Loss(3, 1.0, float("nan")), Loss(4, 1.0, 1.5))
LOSSES = Losses(4, 3, 0.5, 0.3, ROWS[1], ROWS[3], ROWS, not_finite=1)
FULL = report(
    causes=(
        cause(rule="TDL403", op="aten.index_put", file=f"{EVIL}.py", message=EVIL, step=2, epoch=1),
        cause(op="aten.sum", file="b.py", instead="Sort it.", proven=True, reader="b.py:9", stream="process spawn 1"),
    ),
    fix=out.FixOutcome(
        True,
        ("TDL203",),
        ("TDL101", "TDL203"),
        1.0,
        command="torchdet-lint --fix",
        edited_runs=4,
        attempts=(out.Attempt((), "diverged", ("b.py:3",)), out.Attempt(("TDL203",), "identical")),
    ),
    losses=LOSSES,
    left=(out.Left("metric.npy", "byte 9 differs"),),
    evidence=(out.Judged("TDL101", "b.py", 3, "", "confirmed", EVIL, ""),),
    command="torchdet-lint verify train.py",
)
SITE = Site("aten.sum", "forward", "nowhere.py", 12, "main", text=EVIL)
PICTURE = Picture(
    (
        Lane("main", 90, 1, (0,) * 30 + (1, 1, 0, 2), True, ((40, 60),), ((45, 1), (90, 2))),
        Lane(f"process {EVIL}", 50, 1, (0, 3), False),
    ),
    (Heat(SITE, "cause", 2, 5, 7, 1, "main"), Heat(SITE._replace(op="aten.mul"), "consequence", 1, 5, 8, 1, "main")),
    ({"torch": "2.13", "same": "1"}, {"torch": "2.12", "same": "1", "$SEED": EVIL}),
)


def test_the_page_has_all_its_parts_and_loads_nothing():
    text = page_of(FULL, PICTURE)
    read = Reader(text)
    assert read.open == []
    titles = re.findall(r"<h2>(.*?)</h2>", text)
    assert titles == [
        "Root causes", "The run", "Loss by step", "Causes and fixes", "Source by heat", "Left behind",
        "The linter&#x27;s findings", "Environments", "Runs, and how to do them again",
    ]  # fmt: skip
    assert {tag for tag, _ in read.tags}.isdisjoint({"img", "link", "iframe", "object"})
    assert not [pair for tag, pair in read.tags if {"src", "href", "onerror", "onclick"} & set(pair)]
    assert "of those from the first that differs on" in text
    assert "http://" not in text
    assert "https://" not in text
    assert "url(#room)" in text
    assert text.count("url(") == 1
    assert "default-src 'none'" in text
    assert "prefers-color-scheme: dark" in text
    assert "@media print" in text


def test_texts_of_the_program_are_texts():
    text = page_of(FULL, PICTURE)
    assert text.count("<script>") == text.count("</script>") == 1
    read = "".join(Reader(text).texts)
    # The command, the file, the message, the note, the state's reason, the line of source and the variable.
    assert read.count(EVIL) >= 7


def test_what_differs_is_drawn_where_it_is():
    text = page_of(FULL, PICTURE)
    drawn = [pair for tag, pair in Reader(text).tags if tag == "rect" and pair.get("class")]
    kinds = [pair["class"] for pair in drawn]
    assert kinds == ["whole", "lasting", "lasting", "parted", "whole", "healed"]
    left = [float(pair["x"]) for pair in drawn]
    # 1000 units for 90 ops, from 200 on: ops 30 and 31 are one stretch, op 33 another.
    assert [round((x - 200) * 90 / 1000) for x in left] == [0, 30, 33, 40, 0, 1]
    widths = [float(pair["width"]) for pair in drawn]
    assert [round(width * 90 / 1000) for width in widths] == [90, 2, 1, 20, 50, 1]
    assert "ops 30 to 31: 2 differ; it lasts" in text
    assert "ops 40 to 59: run B goes another way" in text
    assert ">step 2<" in text


def test_a_loss_that_is_no_number_leaves_a_gap_and_the_first_difference_is_marked():
    text = page_of(FULL, PICTURE)
    lines = [pair for tag, pair in Reader(text).tags if tag in ("polyline", "circle") and pair.get("class")]
    assert [pair["class"] for pair in lines] == ["run-a", "run-b", "run-b", "gap", "gap"]
    assert len(lines[0]["points"].split()) == 4
    assert len(lines[1]["points"].split()) == 2
    assert text.count('<line class="first"') == 2


def test_equal_runs_and_failed_ones_have_a_page_too():
    for verdict, said in (
        ("identical", "equal, bit for bit"),
        ("failed", "failed"),
        ("nothing", "nothing was compared"),
    ):
        text = page_of(report(verdict=verdict, failure="why"), Picture())
        assert Reader(text).open == []
        assert said in text
    assert "within the tolerance 0.1" in page_of(report(tolerance=out.Tolerance(0.1, True, "")), Picture())


def test_positions_are_counted_in_bounded_memory():
    counted = Histogram()
    for position in (0, 1, 5, 3_000_000, 3_000_001):
        counted.add(position)
    assert len(counted.cells) <= CELLS
    assert sum(counted.cells) == 5
    assert counted.cells[0] == 3
    assert counted.cells[3_000_000 // counted.width] == 2


def test_the_page_of_a_million_ops_in_many_processes_is_small():
    cells = tuple(number % 2 for number in range(CELLS))
    lanes = tuple(Lane(f"process spawn {number}", 1_000_000, 1000, cells, True) for number in range(200))
    rows = tuple(Loss(number, 1 / (number + 1), 1 / (number + 1.5)) for number in range(400))
    site = Site("aten.convolution_backward.default", "backward", "x.py", 1, "f", text="y = " + "x" * 190)
    heat = tuple(
        Heat(site._replace(file=f"{number % 20}.py", line=number * 9), "cause", 5, 9, 1, 1, "main")
        for number in range(1, 400)
    )
    causes = tuple(cause(rule="TDL101", message="m" * 200, file="a.py", instead="i" * 300) for _ in range(400))
    whole = report(causes=causes, losses=Losses(400, 400, 1.0, 1.0, rows[0], rows[-1], rows))
    text = page_of(whole, Picture(lanes, heat, ({}, {})))
    assert len(text.encode()) < 2_000_000
    assert "136 more streams are not drawn" in text
    assert Reader(text).open == []


def test_the_picture_is_no_part_of_the_json():
    told = msgspec.json.decode(msgspec.structs.replace(FULL, picture=PICTURE).to_json())
    assert "picture" not in told
    assert told["fix"]["attempts"][1] == {"fixes": ["TDL203"], "verdict": "identical", "left": []}


BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
PRESS = """<script>
const picture = document.querySelector("svg[data-zoom]");
for (const key of ["+", "+", "n"]) picture.dispatchEvent(new KeyboardEvent("keydown", {key, cancelable: true}));
document.title = `scale ${picture.dataset.scale} ${picture.querySelector("g.lanes").getAttribute("transform")}`;
</script>"""


@pytest.mark.skipif(BROWSER is None, reason="needs a browser")
def test_a_browser_shows_the_page_and_its_keys_zoom(tmp_path):
    page = tmp_path / "page.html"
    page.write_text(page_of(FULL, PICTURE).replace("</body>", f"{PRESS}</body>"), encoding="utf-8")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom"]
    done = subprocess.run([BROWSER, *flags, page.as_uri()], capture_output=True, text=True, timeout=120, check=True)
    title = re.search(r"<title>(.*?)</title>", done.stdout)[1]
    scale, shift = re.fullmatch(r"scale (\S+) translate\((\S+) 0\) scale\(\S+ 1\)", title).groups()
    assert float(scale) == 2.25
    # The first difference, op 30 of 90, is at the left edge.
    assert float(shift) == pytest.approx(200 - (200 + 1000 * 30 / 90) * 2.25, abs=0.1)
    assert "alert" not in re.sub(r"&lt;.*?&gt;", "", done.stdout)


def test_the_losses_say_that_they_are_equal_and_by_how_much_they_differ():
    nan = float("nan")

    def page(*rows):
        told = Losses(len(rows), len(rows), 1.0, 1.0, None, rows[-1], rows)
        return page_of(report(losses=told), Picture((), ()))

    assert "The losses are equal." in page(Loss(1, 2.0, 2.0), Loss(2, nan, nan))
    assert "No difference that is a finite number." in page(Loss(1, 2.0, 2.0), Loss(2, nan, 1.0))
    assert 'y="14">50<' in page(Loss(1, 2.0, 2.5), Loss(2, 50.0, 0.0))
    assert 'y="14">1e308<' in page(Loss(1, 2.0, 2.5), Loss(2, 1e308, 0.0))
