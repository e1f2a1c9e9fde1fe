"""Read a data set of the Hugging Face hub, or a local folder that is laid out like one, through `datasets`."""

from __future__ import annotations

import hashlib
import importlib
import logging
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from demur.data.rows import Record
from demur.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

__all__ = ["HUB_PREFIX", "HubPart"]

_LOG = logging.getLogger(__name__)
HUB_PREFIX = "hf://"
_HOW = "hf://owner/name[:config][/split], or hf:///folder[:config][/split] for a local one"
_OWNER_AND_NAME = 2
# The colon of `C:\\data` and `/C:/data` begins no configuration.
_DRIVE = re.compile(r"/?([A-Za-z]:)(?=[\\/])")


@dataclass(frozen=True, slots=True)
class HubPart:
    """Read one split of one data set, streamed.

    Attributes:
        dataset: `owner/name`, or the path of a local folder.
        config: Which configuration, where there are several.
        split: Which split.
        revision: The commit that is read, where the hub tells it.
        rows: The opened split.
    """

    dataset: str
    config: str | None
    split: str
    revision: str | None
    rows: Iterable[Mapping[str, object]]

    @classmethod
    def open(cls, spec: str) -> HubPart:
        """Open `hf://owner/name[:config][/split]`; the default split is `train`, else the first one.

        Raises:
            SourceError: `datasets` is not installed, or it cannot open the data set.
        """
        dataset, config, wanted = _parsed(spec)
        datasets = _library()
        revision = None if Path(dataset).is_dir() else _revision(dataset)
        try:
            splits = _splits(datasets, dataset, config, revision)
        except Exception as error:  # `datasets` raises a dozen unrelated types, its network libraries more
            message = f"{spec}: `datasets` cannot open it ({error}); give {_HOW}"
            raise SourceError(message) from error
        if wanted is not None and wanted not in splits:
            message = f"{spec}: no split {wanted!r}; there is {', '.join(splits)}"
            raise SourceError(message)
        split = wanted if wanted is not None else _default_split(list(splits), spec)
        return cls(dataset, config, split, revision, splits[split])

    @property
    def name(self) -> str:
        """Return the data set with its configuration and split."""
        return f"{HUB_PREFIX}{self.dataset}{'' if self.config is None else ':' + self.config}/{self.split}"

    @property
    def size(self) -> None:
        """Return None: a stream does not say how long it is."""
        return

    def records(self) -> Iterator[Record]:
        """Yield the rows in order.

        Raises:
            SourceError: The stream breaks off.
        """
        try:
            for number, fields in enumerate(self.rows, start=1):
                yield Record(number, fields, 0.0)
        except Exception as error:  # as above: reading goes through network and file libraries alike
            message = f"{self.name}: breaks off ({type(error).__name__}: {error})"
            raise SourceError(message) from error

    def identity(self) -> str | None:
        """Return the name with the revision; for a local folder, with names and hashes of all its files.

        Where the hub tells no revision, None: under the same name there may be other rows the next time.
        """
        if not Path(self.dataset).is_dir():
            return None if self.revision is None else f"{self.name}\0{self.revision}"
        lines = [f"{self.config}\0{self.split}"]
        for path in sorted(path for path in Path(self.dataset).rglob("*") if path.is_file()):
            with path.open("rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
            lines.append(f"{path.relative_to(self.dataset).as_posix()}\0{digest}")
        return "\n".join(lines)


def _parsed(spec: str) -> tuple[str, str | None, str | None]:
    """Take `hf://` apart into data set, configuration and split."""
    rest = spec.removeprefix(HUB_PREFIX)
    drive = _DRIVE.match(rest)
    target, colon, tail = rest[drive.end() if drive is not None else 0 :].partition(":")
    target = target if drive is None else drive[1] + target
    config, _, split = tail.partition("/")
    if not colon and Path(target).is_absolute():
        folder = Path(target)
        target, split = (target, "") if folder.is_dir() else (str(folder.parent), folder.name)
    elif not colon:
        parts = target.split("/")
        target, split = "/".join(parts[:_OWNER_AND_NAME]), "/".join(parts[_OWNER_AND_NAME:])
    if not target or "/" in split or (Path(target).is_absolute() and not Path(target).is_dir()):
        message = f"{spec!r} names no data set; give {_HOW}"
        raise SourceError(message)
    return target, config or None, split or None


def _library() -> Any:  # noqa: ANN401  # a module that may be absent has no type
    try:
        return importlib.import_module("datasets")
    except ImportError as error:
        message = 'hf:// sources need the library `datasets`; run: pip install "demur[hub]"'
        raise SourceError(message) from error


def _splits(
    datasets: Any,  # noqa: ANN401  # as above
    dataset: str,
    config: str | None,
    revision: str | None,
) -> Mapping[str, Iterable[Mapping[str, object]]]:
    """Open all splits; what `save_to_disk` wrote is a single one without a name."""
    if (Path(dataset) / "state.json").is_file():
        return {"train": datasets.load_from_disk(dataset)}
    opened: Mapping[str, Iterable[Mapping[str, object]]] = datasets.load_dataset(
        dataset, name=config, revision=revision, streaming=True
    )
    return opened


def _revision(dataset: str) -> str | None:
    """Ask the hub for the commit that is current, so that what is read can be named; None where it does not answer."""
    try:
        sha = importlib.import_module("huggingface_hub").HfApi().dataset_info(dataset).sha
    except Exception as error:  # noqa: BLE001  # offline or mirrored hubs fail in many ways, and reading may still work
        _LOG.info("the hub does not tell the revision of %s (%s)", dataset, error)
        return None
    return None if sha is None else str(sha)


def _default_split(splits: list[str], spec: str) -> str:
    if not splits:
        message = f"{spec}: holds no split"
        raise SourceError(message)
    split = "train" if "train" in splits else splits[0]
    if len(splits) > 1:
        _LOG.warning("%s: reading the split %r of %s", spec, split, ", ".join(splits))
    return split
