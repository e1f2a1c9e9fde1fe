"""Write the stub of a further kind of refusal into a taxonomy of one's own, to be filled by hand."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import yaml
from pydantic import TypeAdapter, ValidationError

from demur.documents import PLACEHOLDER, Key, listed, read_document, shipped_folder
from demur.errors import OutputError, TaxonomyError
from demur.taxonomy import RESERVED_KEYS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["copy_taxonomy", "new_category"]

_FILE = "refusals.yaml"


def copy_taxonomy(folder: Path) -> Path:
    """Return the taxonomy file in a folder, which gets copies of the shipped taxonomy and crosswalks if it has none.

    Raises:
        OutputError: The folder cannot be written to.
    """
    path = folder / _FILE
    if path.exists():
        return path
    try:
        shutil.copytree(shipped_folder() / "crosswalks", folder / "crosswalks", dirs_exist_ok=True)
        shutil.copyfile(shipped_folder() / _FILE, path)
    except OSError as error:
        message = f"cannot write to {str(folder)!r}: {error.strerror or error}; give a folder that can be written"
        raise OutputError(message) from error
    return path


def new_category(path: Path, key: str, *, group: str, name: str | None = None) -> int:
    """Write the stub of a further category at the end of the categories of a taxonomy file; return its line, from 1.

    All else in the file, comments too, stays as it is. Until each placeholder is filled, the file does not load.

    Args:
        path: The file; stubs in it that are still to be filled do not matter.
        key: Key of the category, in snake case.
        group: Key of its group.
        name: Its name; the key in words where none is given.

    Raises:
        TaxonomyError: The file is missing or damaged, the key is taken, reserved or no key, or there is no such group.
        OutputError: The file cannot be written.
    """
    document = read_document(path)
    _require_new(key, _keys(document, "categories", path), path)
    if group not in (groups := _keys(document, "groups", path)):
        message = f"{path}: {group!r} is no group; the groups are {listed(groups)}"
        raise TaxonomyError(message)
    text = path.read_text(encoding="utf-8").rstrip("\n") + "\n"
    n_before, indent = _place(text, path)
    stub = _stub(key, group, key.replace("_", " ").capitalize() if name is None else name)
    lines = text.splitlines()
    new = ["", *(f"{' ' * indent}{line}" for line in stub)]
    part = path.with_name(f"{path.name}.part")
    try:
        part.write_text("\n".join([*lines[:n_before], *new, *lines[n_before:]]) + "\n", encoding="utf-8")
        part.replace(path)
    except OSError as error:
        message = f"cannot write {str(path)!r}: {error.strerror or error}; give a file that can be written"
        raise OutputError(message) from error
    return n_before + 2


def _require_new(key: str, taken: Sequence[str], path: Path) -> None:
    try:
        TypeAdapter(Key).validate_python(key)
    except ValidationError as error:
        message = f"{key!r} is not in snake case; right would be a key such as 'missing_context'"
        raise TaxonomyError(message) from error
    if key in RESERVED_KEYS:
        message = f"key {key!r} is reserved for what has no kind; use another"
        raise TaxonomyError(message)
    if key in taken:
        message = f"{path}: category {key!r} is there already; give a key of its own, or fill the stub that there is"
        raise TaxonomyError(message)


def _keys(document: object, part: str, path: Path) -> list[str]:
    entries = document.get(part) if isinstance(document, dict) else None
    if not isinstance(entries, list) or not all(isinstance(entry, dict) and "key" in entry for entry in entries):
        message = f"{path}: {part}: is no list of entries with a key; `demur taxonomy validate` says what is wrong"
        raise TaxonomyError(message)
    return [str(entry["key"]) for entry in entries]


def _stub(key: str, group: str, name: str) -> Sequence[str]:
    def fill(hint: str) -> str:
        return f'"{PLACEHOLDER} {hint}>"'

    return (
        f"- key: {_quoted(key)}",
        f"  name: {json.dumps(name, ensure_ascii=False)}",
        f"  group: {_quoted(group)}",
        f"  definition: {fill('the reason for which such a reply refuses, in a sentence or two')}",
        "  boundaries:",
        f"    - against: {fill('key of the nearest other category, or none')}",
        f"      rule: {fill('what tells the two apart')}",
        "  examples:",
        f"    - request: {fill('a request')}",
        f"      reply: {fill('a reply that refuses it for this reason')}",
        "  counter_examples:",
        f"    - request: {fill('a request')}",
        f"      reply: {fill('a reply that looks like this category and is none')}",
        f"      instead: {fill('key of what it is, or none')}",
        f"      why: {fill('what decides')}",
        "  leaves:",
        f"    - {fill('a topic that rows are written about; six to sixty of them')}",
    )


def _quoted(key: str) -> str:
    """Write a key in quotes where YAML would read it as something else: `no`, `on`, `null`."""
    return key if yaml.safe_load(key) == key else json.dumps(key)


def _place(text: str, path: Path) -> tuple[int, int]:
    """Return the number of lines up to the end of the categories, and how far these are indented."""
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    pairs = root.value if isinstance(root, yaml.MappingNode) else []
    categories = next(value for key, value in pairs if key.value == "categories")
    if categories.flow_style or not categories.value:
        message = f"{path}: categories: are not one below the other; write them as a list, each with its `- key:`"
        raise TaxonomyError(message)
    if _ends_in_alias(categories):
        message = f"{path}: the last category ends in an alias; write out what it stands for, or move the category up"
        raise TaxonomyError(message)
    return _end(categories), categories.start_mark.column


def _ends_in_alias(node: yaml.Node) -> bool:
    """Tell whether the last thing in a node is an alias: its marks are those of its anchor, so it ends nowhere."""
    if not isinstance(node, yaml.CollectionNode) or node.flow_style or not node.value:
        return False
    last = node.value[-1]
    before, end = last if isinstance(last, tuple) else (node.value[-2] if len(node.value) > 1 else None, last)
    is_alias = end.start_mark.index < node.start_mark.index or (
        before is not None and end.start_mark.index <= before.start_mark.index
    )
    return is_alias or _ends_in_alias(end)


def _end(node: yaml.Node) -> int:
    """Return the number of lines up to the end of a node; a block's own mark stands behind the comments after it."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _end(last[1] if isinstance(last, tuple) else last)
    is_block = isinstance(node, yaml.ScalarNode) and node.style in ("|", ">")
    return node.end_mark.line + (0 if is_block else 1)
