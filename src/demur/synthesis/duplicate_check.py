"""Drop rows that repeat each other, a corpus or what is evaluated on, and account for every drop."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from demur.data.label_fields import bit_of, conversation_of, label_lines, outcome_of, require_files, with_text
from demur.errors import RowError
from demur.synthesis.duplicates import Seen, exchange_text
from demur.synthesis.near_duplicates import NearDuplicates, normalised
from demur.synthesis.origins import id_of, name_of, origin_of, text_digest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from demur.conversation import Conversation
    from demur.data.label_fields import Outcome, Texts
    from demur.data.rows import Row
    from demur.synthesis.duplicates import View

__all__ = ["Checked", "Drop", "DuplicateCheck", "Reason"]

Reason = Literal["exact_duplicate", "conflicting_labels", "near_duplicate", "evaluation_row", "unreadable"]


@dataclass(frozen=True, slots=True)
class Drop:
    """Say why a row is dropped.

    Attributes:
        where: Its file and line.
        id: Its id, or None where it has none or cannot be read.
        reason: `exact_duplicate`: request and reply are those of another row, by normalised text; of a row and its
            variants, the whole text is, to the letter. `conflicting_labels`: request and reply are those of another row
            by normalised text, and that row has another verdict, or another bit `refusal` where one of them has no
            verdict. `near_duplicate`: nearly so, with the same label.
            `evaluation_row`: exchange, request or reply is nearly that of a row to be avoided. `unreadable`: it is no
            row with messages.
        detail: For an unreadable row, what is wrong with it; else what was compared.
        partner: File, line and id of the other row.
        similarity: Jaccard index of what was compared.
    """

    where: str
    id: str | None
    reason: Reason
    detail: str
    partner: str | None = None
    similarity: float | None = None


@dataclass(frozen=True, slots=True)
class Checked:
    """Keep one row of the file that is checked, as it stands in it, and why it is dropped, if it is."""

    row: Row | None
    drop: Drop | None


@dataclass(frozen=True, slots=True)
class _Known:
    """Keep of a row that others are compared with what a report needs."""

    label: str
    verdict: Outcome | None
    is_refusal: bool | None
    root: str
    is_variant: bool
    digest: str

    def agrees(self, other: _Known) -> bool:
        """Tell whether two labels say the same; where one is but the bit, whether their bits do."""
        if self.verdict is None or other.verdict is None:
            return self.is_refusal == other.is_refusal
        return self.verdict == other.verdict

    def is_relative(self, other: _Known) -> bool:
        """Tell whether one is a variant of the other, or both are of one row, and they are not the very same text."""
        is_family = self.root == other.root and (self.is_variant or other.is_variant)
        return is_family and self.digest != other.digest


@dataclass(slots=True)
class DuplicateCheck:
    """Compare rows with a corpus, with rows to be avoided, and with those that were kept before.

    Among rows to train on, the same request with another reply is welcome, so only whole exchanges are compared, and a
    near duplicate with another verdict is a contrast, not a copy. A row and its variants were made alike on purpose,
    down to case and marks: among them only the same text is a copy, to the letter and in all turns, and only the same
    words under another verdict are a conflict. Of a row to be avoided, neither the exchange nor the request nor the
    reply may come back, at no turn.

    Attributes:
        threshold: Jaccard index from which texts are near duplicates.
        texts: Messages by id, for rows that have none of their own.
    """

    threshold: float = 0.6
    texts: Texts = field(default_factory=dict)
    _kept: NearDuplicates = field(init=False)
    _avoided: Seen = field(init=False)
    _known: dict[str, _Known] = field(default_factory=dict, init=False)
    _exact: dict[str, list[str]] = field(default_factory=dict, init=False)
    _corpus_files: set[Path] = field(default_factory=set, init=False)
    _avoided_files: set[Path] = field(default_factory=set, init=False)

    def __post_init__(self) -> None:
        """Set up the indexes."""
        self._kept = NearDuplicates(threshold=self.threshold)
        self._avoided = Seen(threshold=self.threshold)

    def add_corpus(self, files: Iterable[Path]) -> int:
        """Take the rows of files as kept before; return how many there are. A file that is given again is passed over.

        Raises:
            SourceError: A file is missing, or a row of it cannot be read.
        """
        n_rows = 0
        for row in _rows(files, self._corpus_files):
            self._keep(row, self._conversation(row))
            n_rows += 1
        return n_rows

    def avoid(self, files: Iterable[Path]) -> int:
        """Take the rows of files as what must not come back; return how many there are. A file counts once, as above.

        Raises:
            SourceError: A file is missing, or a row of it cannot be read.
        """
        n_rows = 0
        for row in _rows(files, self._avoided_files):
            conversation = self._conversation(row)
            self._known[row.where] = _known(row, conversation)
            self._avoided.add(row.where, conversation)
            n_rows += 1
        return n_rows

    def check(self, path: Path) -> Iterator[Checked]:
        """Yield each row of a file, in order, with why it is dropped; of equals, the first is kept.

        Raises:
            SourceError: The file is missing.
        """
        require_files([path], "a JSONL file of labelled conversations")
        for line in label_lines(path):
            if isinstance(line, RowError):
                yield Checked(None, Drop(line.where, None, "unreadable", line.message))
                continue
            try:
                conversation = self._conversation(line)
                drop = self._drop(line, conversation)
                if drop is None:
                    self._keep(line, conversation)
            except RowError as error:
                drop = Drop(line.where, id_of(line), "unreadable", error.message)
            yield Checked(line, drop)

    def _conversation(self, row: Row) -> Conversation:
        # The row itself stays as it stands: texts that lie elsewhere are not written out with it.
        return conversation_of(with_text(row, self.texts))

    def _drop(self, row: Row, conversation: Conversation) -> Drop | None:
        return self._leak(row, conversation) or self._copy(row, conversation)

    def _leak(self, row: Row, conversation: Conversation) -> Drop | None:
        repeat = self._avoided.find_in(conversation)
        if repeat is None:
            return None
        return self._dropped(row, "evaluation_row", repeat.view, repeat.key, repeat.similarity)

    def _copy(self, row: Row, conversation: Conversation) -> Drop | None:
        own, text = _known(row, conversation), exchange_text(conversation)
        for key in self._exact.get(normalised(text), ()):
            other = self._known[key]
            if not own.agrees(other):
                return self._dropped(row, "conflicting_labels", "exchange", key, 1.0)
            if not own.is_relative(other):
                return self._dropped(row, "exact_duplicate", "exchange", key, 1.0)
        for key, similarity in self._kept.find(text):
            other = self._known[key]
            if own.agrees(other) and not own.is_relative(other):
                return self._dropped(row, "near_duplicate", "exchange", key, similarity)
        return None

    def _keep(self, row: Row, conversation: Conversation) -> None:
        text = exchange_text(conversation)
        self._known[row.where] = _known(row, conversation)
        self._kept.add(row.where, text)
        self._exact.setdefault(normalised(text), []).append(row.where)

    def _dropped(self, row: Row, reason: Reason, view: View, key: str, similarity: float) -> Drop:
        return Drop(row.where, id_of(row), reason, view, self._known[key].label, similarity)


def _rows(files: Iterable[Path], taken: set[Path]) -> Iterator[Row]:
    """Yield the rows of the files that are not taken yet: a folder and a file in it may both be given."""
    for path in files:
        if (place := path.resolve()) in taken:
            continue
        taken.add(place)
        require_files([path], "a JSONL file of labelled conversations")
        for line in label_lines(path):
            if isinstance(line, RowError):
                raise line
            yield line


def _known(row: Row, conversation: Conversation) -> _Known:
    name, origin = id_of(row), origin_of(row)
    label = row.where if name is None else f"{row.where} ({name})"
    return _Known(
        label=label,
        verdict=outcome_of(row.fields, row.where),
        is_refusal=bit_of(row.fields, row.where),
        root=name_of(row, conversation) if origin is None else origin,
        is_variant=origin is not None,
        digest=text_digest(conversation),
    )
