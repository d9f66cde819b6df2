"""What is said of a listing of files (TDL304): where its order counts, and how to sort it."""

from __future__ import annotations

import pytest

from torchdet_lint.api import lint_source


def finding(text):
    (found,) = [one for one in lint_source(text) if one.code == "TDL304"]
    return found


@pytest.mark.parametrize(
    ("listing", "said"),
    [
        ("os.listdir(folder)", "Sort the listing: `sorted(os.listdir(…))`."),
        ("glob.glob(folder)", "Sort the listing: `sorted(glob.glob(…))`."),
        ("glob.iglob(folder)", "Sort the listing: `sorted(glob.iglob(…))`."),
        ("Path(folder).rglob('*.pt')", "Sort the listing: `sorted(Path(folder).rglob(…))`."),
        ("Path(folder).iterdir()", "Sort the listing: `sorted(Path(folder).iterdir(…))`."),
        ("os.scandir(folder)", "Sort the entries by name: `sorted(os.scandir(…), key=lambda entry: entry.name)`."),
    ],
)
def test_the_help_names_what_the_finding_is_about(listing, said):
    text = f"import glob\nimport os\nfrom pathlib import Path\n\ndef names(folder):\n    return list({listing})\n"
    assert finding(text).help == said


@pytest.mark.parametrize("taken", ["files", "folders"])
def test_the_help_for_a_walk_sorts_the_folders_too(taken):
    body = f"    for root, folders, files in os.walk(folder):\n        found += {taken}\n"
    text = f"import os\n\ndef names(folder):\n    found = []\n{body}    return found\n"
    assert finding(text).help == "Sort the folders of the loop in place (`folders.sort()`), and the files too."


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("if name in seen: raise KeyError(f'{place} again')", "it is returned in this order"),
        ("assert name not in seen, f'{place} again'", "it is returned in this order"),
        ("pass", "it is returned in this order"),
        ("seen[name] = place", "numbers are given out in its order here"),
        ("assert place < 3", "numbers are given out in its order here"),
    ],
)
def test_a_number_that_only_an_error_tells_is_no_reason(body, told):
    text = (
        "import os\n\ndef names(folder):\n    names, seen = os.listdir(folder), {}\n"
        f"    for place, name in enumerate(names):\n        {body}\n    return names\n"
    )
    assert [one.message for one in finding(text).related] == [told]


@pytest.mark.parametrize(
    ("taken", "safe"),
    [
        ("next(Path(folder).glob('*.yaml'))", "safe"),
        ("next(Path(folder).rglob('*.yaml'))", "unsafe"),
        ("next(Path(folder).glob('**/*.yaml'))", "unsafe"),
        ("list(Path(folder).rglob('*.yaml'))[0]", "unsafe"),
        ("glob.glob(folder + '/**/*.yaml', recursive=True)[0]", "unsafe"),
        ("glob.glob(f'{folder}/*.yaml')[0]", "safe"),
        ("list(Path(folder).rglob('*.yaml'))", "safe"),
    ],
)
def test_the_first_of_a_listing_that_begins_at_the_top_is_no_other_one_after_a_safe_fix(taken, safe):
    """Sorted by path, `d/assets/x.yaml` comes before `d/data.yaml`."""
    text = f"import glob\nfrom pathlib import Path\n\ndef settings(folder):\n    return {taken}\n"
    assert finding(text).fix.applicability == safe


def test_listings_of_one_folder_are_sorted_together_under_whatever_name():
    found = lint_source(
        "import os\n\n\nclass Data:\n    def train(self, path):\n        folder = os.path.join(path, 'train')\n"
        "        self.rows = [(name, i) for i, name in enumerate(os.listdir(folder))]\n\n"
        "    def val(self, path):\n"
        "        self.ids = {name: i for i, name in enumerate(os.listdir(os.path.join(path, 'train')))}\n"
    )
    assert [sorted(edit.location.row for edit in one.fix.edits) for one in found] == [[7, 10], [7, 10]]
