"""Read the YAML that people write, and say of every fault in it what was met, where, and what would be right."""

from __future__ import annotations

import hashlib
import json
import os
import reprlib
from collections import Counter
from dataclasses import asdict, fields, is_dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args, get_type_hints

import yaml
from pydantic import ConfigDict, StringConstraints, TypeAdapter, ValidationError

from demur.errors import DemurError, TaxonomyError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from _typeshed import DataclassInstance
    from pydantic_core import ErrorDetails

__all__ = [
    "CLOSED",
    "PLACEHOLDER",
    "Key",
    "Text",
    "fingerprint",
    "listed",
    "raise_problems",
    "read_document",
    "repeated",
    "shipped_folder",
    "user_path",
    "validate",
    "written_out",
]

Record = TypeVar("Record")

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Key = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9]*(_[a-z0-9]+)*$")]

# An unknown field is an error: a misspelt `boundarys` would otherwise vanish without a word.
CLOSED = ConfigDict(extra="forbid")

# What a stub writes where a person is to write; no document that still holds it is read.
PLACEHOLDER = "<fill in:"


# libyaml reads the taxonomy in a tenth of the time; not every build of PyYAML has it.
_SafeLoader: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


# What PyYAML lets through where a scalar is not of the form that it looks like, or of its tag: 30 February, `!!int x`.
_NO_VALUE = (ArithmeticError, AttributeError, LookupError, ValueError)


class _StrictLoader(_SafeLoader):  # type: ignore[misc, valid-type]  # a class that is chosen at import
    """Read as `yaml.safe_load` does, but refuse a key that stands twice in one mapping, and a node within itself."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:  # noqa: ANN401, ARG002  # PyYAML's own
        """Build a value whole: only then does PyYAML see that an anchor holds itself."""
        try:
            return super().construct_object(node, deep=True)
        except _NO_VALUE as fault:
            problem = f"{reprlib.repr(node.value)} cannot be read ({fault}); put a text in quotation marks"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark) from fault

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Check the keys before PyYAML lets the last of two equal ones win."""
        met: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in met:
                    problem = f"key {key.value!r} stands twice in one mapping; keep one of them"
                    raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
                met.add(key.value)
        return super().construct_mapping(node, deep=deep)  # type: ignore[no-any-return]  # of a class chosen at import


def shipped_folder(name: str = "taxonomy") -> Path:
    """Find a folder of shipped data, such as the taxonomy: inside an installed package, else in the repository."""
    packaged = Path(str(files("demur") / "_data" / name))
    return packaged if packaged.is_dir() else Path(__file__).parents[2] / name


def user_path(named: str | os.PathLike[str]) -> Path:
    """Return the path that a user named; `~` is the home folder, which no shell puts in place in Python."""
    # `Path.expanduser` raises where there is no such user, and then it is the name of a file.
    return Path(os.path.expanduser(named))  # noqa: PTH111


def read_document(path: Path, *, error: type[DemurError] = TaxonomyError) -> object:
    """Read one YAML file into plain mappings, lists and scalars.

    Args:
        path: The file.
        error: What is raised on a fault: the error of what the file should hold.

    Raises:
        DemurError: Of the kind given: the file cannot be read, is no valid UTF-8 or YAML, repeats a key, or holds
            itself by an anchor; the message names the line.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        message = f"{path}: no such file; give the path of a YAML file"
        raise error(message) from None
    except (OSError, UnicodeDecodeError) as fault:
        message = f"{path}: cannot be read ({fault}); give the path of a YAML file in UTF-8"
        raise error(message) from fault
    try:
        # The loader is PyYAML's safe one with one more check: it builds plain values only.
        return yaml.load(text, Loader=_StrictLoader)  # noqa: S506
    except yaml.MarkedYAMLError as fault:
        line = "" if fault.problem_mark is None else f":{fault.problem_mark.line + 1}"
        message = f"{path}{line}: invalid YAML: {fault.problem}"
        raise error(message) from fault
    except yaml.YAMLError as fault:
        message = f"{path}: invalid YAML: {fault}"
        raise error(message) from fault
    except RecursionError as fault:
        message = f"{path}: lists and mappings are nested too deep to be read; a document has a few levels"
        raise error(message) from fault


def validate(record: type[Record], document: object, *, where: str, error: type[DemurError] = TaxonomyError) -> Record:
    """Build a record from plain mappings and lists.

    Raises:
        DemurError: Of the kind given: the document does not fit the record, or placeholders of a stub are still in it;
            the message lists every field at fault by its path.
    """
    raise_problems(_unfilled(document), where=where, error=error)
    try:
        return TypeAdapter(record).validate_python(document)
    except ValidationError as fault:
        found = [details for details in fault.errors() if not _is_echo(details)]
        raise_problems([_problem(record, details) for details in found], where=where, error=error)
        raise  # Never reached: a ValidationError has at least one problem.


def raise_problems(problems: Iterable[str], *, where: str, error: type[DemurError] = TaxonomyError) -> None:
    """Raise one error that lists all problems, or nothing where there are none."""
    found = list(problems)
    if len(found) == 1:
        message = f"{where}: {found[0]}"
        raise error(message)
    if found:
        message = f"{where}: {len(found)} problems\n" + "\n".join(f"  {problem}" for problem in found)
        raise error(message)


def _unfilled(document: object, place: tuple[int | str, ...] = ()) -> Iterator[str]:
    """Yield every placeholder that is still to be filled, by its path."""
    if isinstance(document, str) and document.lstrip().startswith(PLACEHOLDER):
        yield f"{_spelled(place)}: is still the placeholder {document!r}; write what it asks for"
    elif isinstance(document, dict):
        for name, value in document.items():
            yield from _unfilled(value, (*place, str(name)))
    elif isinstance(document, list | tuple):
        for position, value in enumerate(document):
            yield from _unfilled(value, (*place, position))


def written_out(record: DataclassInstance) -> dict[str, Any]:
    """Return a record's whole content as JSON has it, defaults written out."""
    content: dict[str, Any] = json.loads(json.dumps(asdict(record)))
    return content


def fingerprint(record: DataclassInstance) -> str:
    """Return the sha256, in hex, of a record's content, which comments and order of fields do not change."""
    return hashlib.sha256(json.dumps(written_out(record), sort_keys=True).encode()).hexdigest()


def listed(names: Iterable[str]) -> str:
    """Spell names for a message."""
    return ", ".join(repr(name) for name in names)


def repeated(place: str, names: Iterable[str]) -> Iterator[str]:
    """Yield a problem for each name that stands more than once."""
    met = [name for name, count in Counter(names).items() if count > 1]
    yield from (f"{place} {name!r} stands more than once; keep one" for name in met)


def _is_echo(details: ErrorDetails) -> bool:
    """Tell what only follows from another fault: entries that are faulty count as missing, too."""
    return details["type"] == "too_short" and len(details["input"]) >= details["ctx"]["min_length"]


def _problem(record: type, details: ErrorDetails) -> str:
    """Say what pydantic met, as a path in the document and what would be right there."""
    *parents, name = details["loc"] or ("",)
    place = _spelled(details["loc"]) or "the document"
    match details["type"]:
        case "missing":
            return f"{place}: is missing"
        case "unexpected_keyword_argument":
            known = _known_fields(record, parents)
            return f"{place}: unknown field {name!r}; the fields here are {listed(known)}"
        case "string_too_short":
            return f"{place}: is empty; write at least a word"
        case "string_pattern_mismatch":
            return f"{place}: {details['input']!r} is not in snake case; right would be a key such as 'missing_context'"
        case "too_short":
            return f"{place}: has {len(details['input'])} entries; give at least {details['ctx']['min_length']}"
        case _:
            return f"{place}: met {reprlib.repr(details['input'])}; {details['msg']}"


def _spelled(location: Iterable[int | str]) -> str:
    """Write a path as one would in code: `categories[3].boundaries[0].rule`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).removeprefix(".")


def _known_fields(record: type, parents: Iterable[int | str]) -> list[str]:
    """Walk from a record along a path, and name the fields of the record found there."""
    for name in parents:
        if isinstance(name, str):
            hints = get_type_hints(record, include_extras=True)
            record = _record_in(hints[name]) if name in hints else record
    return [field.name for field in fields(record)]


def _record_in(hint: Any) -> Any:  # noqa: ANN401 - a type hint has no narrower type
    """Find the dataclass inside a hint such as `tuple[Category, ...]`; None where there is none."""
    # Pydantic's constraints are dataclasses too, but instances.
    if isinstance(hint, type) and is_dataclass(hint):
        return hint
    return next((found for each in get_args(hint) if (found := _record_in(each)) is not None), None)
