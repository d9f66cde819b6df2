"""What a report, a forecast and a failure say on a screen: numbers, places, long texts."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from torchdet_lint.verifier.comparison.outcome import Parting
from torchdet_lint.verifier.launch.standard import last_words
from torchdet_lint.verifier.trace import Site
from torchdet_lint.verifier.verification import outcome as out
from torchdet_lint.verifier.verification.forecast import Place
from torchdet_lint.verifier.verification.forecast import text as forecast_text
from torchdet_lint.verifier.verification.leftovers import pickled
from torchdet_lint.verifier.verification.resume.check import _Run
from torchdet_lint.verifier.verification.text import text


def report(**more):
    runs = tuple(out.RunSummary(name, "finished", 0, 1.0, 90) for name in "AB")
    fields = {"verdict": "diverged", "mode": "pair", "program": ("train.py",), "runs": runs, "causes": ()}
    fields |= {"spread": out.Spread(90, 9, "persistent", 1), "not_covered": (), "environment": {}}
    return out.Outcome(**{**fields, **more})


@pytest.mark.parametrize(
    ("spread", "told"),
    [
        (out.Spread(1, 1, "persistent", 0), "1 of 1 op differs"),
        (out.Spread(90, 1, "persistent", 0), "1 of 90 ops differs"),
        (out.Spread(2000, 2, "persistent", 0), "2 of 2 000 ops differ\n"),
        (out.Spread(9, 2, "persistent", 0), "spread: no more places follow from this; it lasts to the end"),
        (out.Spread(9, 2, "persistent", 1), "spread: 1 more place follows from this"),
        (out.Spread(9, 2, "persistent", 2), "spread: 2 more places follow from this"),
    ],
)
def test_numbers_and_their_nouns_agree(spread, told):
    assert told in text(report(spread=spread))
    assert "in 1 op, 1 file and 2 lines of output\n" in text(
        report(verdict="identical", spread=out.Spread(1, 0, "", 0), compared_files=1, compared_lines=2)
    )


def site(line):
    return Site("aten.add", "forward", "x.py", line, "f")


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ((8, 8, 8), "paths part after x.py:8: there A runs 1 op, B 26 ops; they meet again"),
        ((7, 8, 8), "paths part after x.py:7: at x.py:8 A runs 1 op, B 26 ops; they meet again"),
        ((7, 8, 9), "paths part after x.py:7: A goes to x.py:8 (1 op), B to x.py:9 (26 ops); they meet again"),
    ],
)
def test_a_place_at_which_paths_part_is_told_once(lines, told):
    parting = Parting(3, *map(site, lines), 1, 26, True)
    assert told in text(report(spread=out.Spread(90, 9, "persistent", 1, (parting,)))).splitlines()


def test_no_note_of_the_fixes_is_wider_than_a_screen():
    note = "TDL307: a fast task waits for a slow one before it; " + "and others cannot be reached, " * 5
    shown = text(report(fix=out.FixOutcome(False, ("TDL307",), ("TDL307",), 1.0, notes=(note,))))
    assert "cannot be reached" in shown
    assert max(map(len, shown.splitlines())) <= 120


def test_of_long_texts_the_part_is_shown_in_which_they_differ():
    begin = "epoch 1 of 10, learning rate 0.001, batch size 64, loss 1.04978084564"
    told = pickled.both(f"{begin}, score 0.25", f"{begin}, score 0.5{'0' * 80}")
    assert told == f"'…1.04978084564, score 0.25' | '…1.04978084564, score 0.5{'0' * 34}…'"
    assert pickled.both(begin, f"x{begin}") == f"'{begin[:59]}…' | 'x{begin[:58]}…'"
    assert pickled.both("loss 1", "loss 2") == "'loss 1' | 'loss 2'"


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            'File "{root}/a.py", line 3\n    print("a"\n         ^\nSyntaxError: never closed\n',
            "SyntaxError: never closed (a.py:3)",
        ),
        (
            (
                'Traceback (most recent call last):\n  File "{root}/a.py", line 2, in f\n'
                ' File "b.py", line 7\nTabError: 1\n'
            ),
            "TabError: 1 (b.py:7)",
        ),
        (
            'Traceback (most recent call last):\n  File "{root}/a.py", line 2, in f\n    g()\nKeyError: 1\n',
            "KeyError: 1 (a.py:2)",
        ),
    ],
)
def test_an_error_is_told_with_its_line(tmp_path, said, told):
    assert last_words(said.format(root=tmp_path), SimpleNamespace(returncode=1), tmp_path) == told


def test_a_resume_after_the_last_step_is_told_as_that(tmp_path, monkeypatch):
    (tmp_path / "notes").write_text('["save", 9, "x.pt"]\n')
    monkeypatch.setattr(_Run, "steps", {1: None, 13: None})
    run = _Run("saving", Path("none"), tmp_path / "notes")
    assert run.saved(9) == 9
    for least, told in ((40, "--resume step=40: the program ends after 13 steps"), (10, "after steps 10 to 13")):
        with pytest.raises(out.VerifyError, match=told):
            run.saved(least)


def test_a_forecast_names_what_helps():
    place = Place(
        "TDL404", "torch.nn.RNN", "backward", "silent", "a.py", 3, "", 1, False, "", "Call os.environ.setdefault(…)"
    )
    told = forecast_text((place,), "cuda", "2.13")
    assert told.startswith("1 place would differ on cuda")
    assert "no switch" not in told
    assert "a variable of the environment does" in told
