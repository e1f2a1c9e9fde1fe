"""The stub of a further kind goes where kinds stand, changes nothing else, and does not load until it is filled."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from demur.documents import PLACEHOLDER, shipped_folder
from demur.errors import OutputError, TaxonomyError
from demur.stubs import copy_taxonomy, new_category
from demur.taxonomy import Taxonomy

if TYPE_CHECKING:
    from pathlib import Path

SMALL = """\
version: "1"
name: small
gate: {full: all of it, partial: some of it, none: nothing of it}
groups:
  - {key: wont, name: Will not, definition: It will not.}
categories:
- key: rude
  name: Rude
  group: wont
  definition: It would be rude.
- key: dull
  name: Dull
  group: wont
  definition: >
    It would
    be dull.
# Cases that were decided.
hard_cases:
  - {case: It yawns., decision: {labels: [dull]}, rule: It says so.}
"""


def write(path: Path, text: str) -> Path:
    """Write a file."""
    path.write_text(text, encoding="utf-8")
    return path


def filled(text: str) -> str:
    """Fill the placeholders of a stub: neighbours with none, everything else with words of its own."""
    lines = text.splitlines()
    for i, line in enumerate(lines):
        if PLACEHOLDER in line:
            name = line[: line.index(f'"{PLACEHOLDER}')]
            lines[i] = name + ("none" if name.strip(" -") in ("against:", "instead:") else f"Words of line {i}.")
    return "\n".join(lines) + "\n"


def test_a_stub_stands_after_the_last_category(tmp_path: Path) -> None:
    """Before the comment on what follows, at the categories' own indent; all other lines are as they were."""
    path = write(tmp_path / "mine.yaml", SMALL)
    line = new_category(path, "vain", group="wont", name="In vain: all of it")
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[line - 1] == "- key: vain"
    before = SMALL.splitlines()
    place = before.index("# Cases that were decided.")
    assert lines[:place] == before[:place]
    assert lines[-3:] == before[-3:]
    write(path, filled(path.read_text(encoding="utf-8")))
    taxonomy = Taxonomy.load(path)
    assert taxonomy.keys == ("rude", "dull", "vain")
    assert taxonomy["vain"].name == "In vain: all of it"
    assert len(taxonomy.hard_cases) == 1


def test_a_stub_does_not_load_until_it_is_filled(tmp_path: Path) -> None:
    """Each placeholder is named by its path, with what it asks for."""
    path = write(tmp_path / "mine.yaml", SMALL)
    new_category(path, "vain", group="wont")
    with pytest.raises(TaxonomyError) as caught:
        Taxonomy.load(path)
    n_placeholders = path.read_text(encoding="utf-8").count(PLACEHOLDER)
    assert str(caught.value).count("is still the placeholder") == n_placeholders == 10
    assert "categories[2].definition: is still the placeholder '<fill in: the reason" in str(caught.value)


@pytest.mark.parametrize("key", ["no", "on", "null"])
def test_a_key_that_yaml_would_take_for_something_else_is_one(tmp_path: Path, key: str) -> None:
    """It is written in quotes, and known to be there."""
    path = write(tmp_path / "mine.yaml", SMALL.replace("wont", "'yes'"))
    new_category(path, key, group="yes")
    with pytest.raises(TaxonomyError, match="is there already"):
        new_category(path, key, group="yes")
    write(path, filled(path.read_text(encoding="utf-8")))
    assert Taxonomy.load(path).keys[-1] == key


def test_a_further_stub_may_follow_one_that_is_not_filled(tmp_path: Path) -> None:
    """Several kinds can be laid out before any is written; also at the end of a file without an end of line."""
    text = SMALL[: SMALL.index("# Cases")].rstrip()
    path = write(tmp_path / "mine.yaml", text)
    new_category(path, "vain", group="wont")
    new_category(path, "sad", group="wont")
    write(path, filled(path.read_text(encoding="utf-8")))
    assert Taxonomy.load(path).keys == ("rude", "dull", "vain", "sad")


@pytest.mark.parametrize(
    ("key", "group", "said"),
    [
        ("dull", "wont", "'dull' is there already"),
        ("none", "wont", "'none' is reserved"),
        ("unnamed", "wont", "'unnamed' is reserved"),
        ("Too Dull", "wont", "'Too Dull' is not in snake case"),
        ("vain", "cant", "'cant' is no group; the groups are 'wont'"),
    ],
)
def test_a_stub_that_could_not_load_is_refused(tmp_path: Path, key: str, group: str, said: str) -> None:
    """And the file stays as it was."""
    path = write(tmp_path / "mine.yaml", SMALL)
    with pytest.raises(TaxonomyError, match=said):
        new_category(path, key, group=group)
    assert path.read_text(encoding="utf-8") == SMALL


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("categories: [", "invalid YAML"),
        ("groups: []", "categories: is no list of entries"),
        ("groups: [{key: a}]\ncategories: [{key: b, group: a}]\n", "are not one below the other"),
    ],
)
def test_a_file_that_cannot_take_a_stub_is_said_to(tmp_path: Path, text: str, said: str) -> None:
    """Damaged, without categories, or with categories in one line."""
    path = write(tmp_path / "mine.yaml", text)
    with pytest.raises(TaxonomyError, match=said):
        new_category(path, "vain", group="a")


@pytest.mark.parametrize("end", ["leaves: *common", "leaves:\n    - a\n    - *word"])
def test_a_file_that_ends_in_an_alias_is_left_alone(tmp_path: Path, end: str) -> None:
    """Its end is that of the anchor, which stands further up: the stub would go into the middle of a kind."""
    text = SMALL.replace(
        "  definition: It would be rude.", "  definition: &word It would be rude.\n  leaves: &common\n    - a\n    - b"
    )
    text = text.replace("# Cases that", f"  {end}\n# Cases that")
    path = write(tmp_path / "mine.yaml", text)
    with pytest.raises(TaxonomyError, match="the last category ends in an alias; write out what it stands for"):
        new_category(path, "vain", group="wont", name="In vain")
    assert path.read_text(encoding="utf-8") == text


def test_a_folder_gets_a_copy_once(tmp_path: Path) -> None:
    """With the crosswalks; what somebody wrote into the copy is not written over; the folder loads as a taxonomy."""
    path = copy_taxonomy(tmp_path / "mine")
    assert path.read_bytes() == (shipped_folder() / "refusals.yaml").read_bytes()
    assert (tmp_path / "mine" / "crosswalks" / "coconot.yaml").is_file()
    assert Taxonomy.load(tmp_path / "mine").fingerprint == Taxonomy.load().fingerprint
    write(path, SMALL)
    assert copy_taxonomy(tmp_path / "mine").read_text(encoding="utf-8") == SMALL


def test_a_folder_that_cannot_be_written_is_said_to(tmp_path: Path) -> None:
    """A file stands in its place."""
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="cannot write to"):
        copy_taxonomy(tmp_path / "file")


def test_the_shipped_taxonomy_takes_a_stub(tmp_path: Path) -> None:
    """Its leaves are flow lists, and hard cases follow: 17 kinds in the end, and every hard case."""
    path = copy_taxonomy(tmp_path)
    new_category(path, "usage_limits", group="cannot")
    write(path, filled(path.read_text(encoding="utf-8")))
    before, after = Taxonomy.load(), Taxonomy.load(path)
    assert after.keys == (*before.keys, "usage_limits")
    assert after.hard_cases == before.hard_cases
    assert after.categories[:16] == before.categories
