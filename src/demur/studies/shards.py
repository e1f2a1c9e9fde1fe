"""Write verdicts as Parquet, one shard for each chunk, so that what is finished survives whatever comes."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from demur.conversation import Conversation
from demur.errors import OutputError, TaxonomyError
from demur.studies.tally import Tally
from demur.studies.writing import read_object, write_json, writing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    import pyarrow as pa

    from demur.studies.tally import Judged
    from demur.taxonomy import Taxonomy

__all__ = ["TEXTS", "Packed", "Shards", "is_part", "read_tally", "remove_parts", "schema"]

TEXTS = "texts.sqlite"
"""Name of what is known of the texts in finished chunks, which lies beside them while the audit is under way."""

# Enough rows to compress well. To join the shards is where an audit needs most memory: with four times as many rows, 60
# MB more than all that came before.
_ROW_GROUP = 16_384
# SQLite keeps what it has not put in place yet in files of its own beside.
_PART = re.compile(rf"part-\d{{6,}}\.(?:parquet|json)(?:\.tmp)?|{re.escape(TEXTS)}(?:-wal|-shm|-journal)?")


def schema(keys: Sequence[str]) -> pa.Schema:
    """Return the columns of `verdicts.parquet`; each category has one of its own, P(kind | the reply refuses).

    `file` and `line` say where the row stands, as messages name it. Evidence counts the characters of the reply as it
    was judged, reasoning set apart. `category_set` is empty and `resolution` null where the reply does not refuse, or
    its labeler states no coverage.

    Raises:
        TaxonomyError: A category is named like one of the other columns.
    """
    import pyarrow as pa

    kinds = [pa.field(key, pa.float32()) for key in keys]
    columns = pa.schema(
        [
            pa.field("row_id", pa.int64(), nullable=False),
            pa.field("file", pa.string()),
            pa.field("line", pa.int64()),
            pa.field("side", pa.string()),
            pa.field("turn", pa.int32(), nullable=False),
            pa.field("verdict", pa.string(), nullable=False),
            pa.field("refusal_probability", pa.float64()),
            pa.field("category", pa.string()),
            pa.field("group", pa.string()),
            *kinds,
            pa.field("unscored_reason", pa.string()),
            pa.field("further", pa.list_(pa.string())),
            pa.field("evidence_start", pa.int64()),
            pa.field("evidence_end", pa.int64()),
            pa.field("evidence_score", pa.float64()),
            pa.field("category_set", pa.list_(pa.string())),
            pa.field("resolution", pa.string()),
        ]
    )
    if len(set(columns.names)) < len(columns.names):
        taken = sorted({key for key in keys if columns.names.count(key) > 1})
        message = f"categories {taken} are named like columns of verdicts.parquet; give them other keys"
        raise TaxonomyError(message)
    return columns


class Packed(NamedTuple):
    """Keep the two files of a finished chunk as they are: Parquet, and JSON."""

    verdicts: bytes
    tally: bytes


class Shards:
    """Keep the finished chunks of an audit: `part-000000.parquet`, its tally in `part-000000.json`, and so on."""

    def __init__(self, folder: Path, taxonomy: Taxonomy) -> None:
        """Name the folder; nothing is read or written yet."""
        self._folder = folder
        self._taxonomy = taxonomy

    def finished(self) -> int:
        """Count the finished chunks from the first on; one after a gap does not count."""
        number = 0
        while self._tally(number).is_file() and self._verdicts(number).is_file():
            number += 1
        return number

    def numbers(self) -> set[int]:
        """Return the numbers of the finished chunks, of those after a gap too: workers do not finish in order."""
        written = (int(path.stem.removeprefix("part-")) for path in self._folder.glob("part-*.json") if is_part(path))
        return {number for number in written if self._verdicts(number).is_file()}

    def drop_damaged(self) -> None:
        """Drop finished chunks that cannot be read, as after a power cut, so that they are judged again."""
        for number in self.numbers():
            if not self._is_whole(number):
                self._tally(number).unlink(missing_ok=True)

    def tallies(self, numbers: Iterable[int] | None = None) -> Iterator[Tally]:
        """Read the tallies of finished chunks, by default of all from the first on, in order.

        Raises:
            OutputError: A tally is damaged.
        """
        for number in range(self.finished()) if numbers is None else sorted(numbers):
            yield read_tally(self._tally(number))

    def write(self, number: int, judged: Sequence[Judged], tally: Tally) -> None:
        """Write a chunk; it counts as finished once its tally, which is written last, is there."""
        import pyarrow.parquet as pq

        table = _table(judged, self._taxonomy.keys)
        with writing(self._verdicts(number)) as temporary:
            pq.write_table(table, temporary, compression="zstd")
        write_json(self._tally(number), tally.to_json())

    def packed(self, number: int) -> Packed:
        """Read a finished chunk as it is, to be put into another folder."""
        return Packed(self._verdicts(number).read_bytes(), self._tally(number).read_bytes())

    def put(self, number: int, packed: Packed) -> None:
        """Write what `packed` read elsewhere; the tally comes last, as in `write`."""
        for path, content in ((self._verdicts(number), packed.verdicts), (self._tally(number), packed.tally)):
            with writing(path) as temporary:
                temporary.write_bytes(content)

    def join(self, path: Path, *, n_rows: int) -> None:
        """Write all finished chunks as one file, reading one at a time.

        Raises:
            OutputError: They do not hold `n_rows` verdicts, or one is damaged. The file is then left as it was.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        columns = schema(self._taxonomy.keys)
        with writing(path) as temporary, pq.ParquetWriter(temporary, columns, compression="zstd") as writer:
            held: list[pa.Table] = []
            n_joined = 0
            for number in range(self.finished()):
                held.append(_read_verdicts(self._verdicts(number), columns))
                n_joined += held[-1].num_rows
                if sum(table.num_rows for table in held) >= _ROW_GROUP:
                    writer.write_table(pa.concat_tables(held).combine_chunks())
                    held.clear()
            if held:
                writer.write_table(pa.concat_tables(held).combine_chunks())
            if n_joined != n_rows:
                message = (
                    f"{str(self._folder)!r} holds {n_joined:,} verdicts where {n_rows:,} were reached: another process "
                    "seems to have worked on it and cleared up; give each run a folder of its own"
                )
                raise OutputError(message)

    def remove(self) -> None:
        """Remove the chunks, and their folder where nothing else is in it."""
        remove_parts(self._folder)

    def _is_whole(self, number: int) -> bool:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            rows = pq.read_metadata(self._verdicts(number)).num_rows
            return bool(rows == read_tally(self._tally(number)).composition.rows)
        except (OSError, pa.ArrowException, OutputError):
            return False

    def _verdicts(self, number: int) -> Path:
        return self._folder / f"part-{number:06d}.parquet"

    def _tally(self, number: int) -> Path:
        return self._folder / f"part-{number:06d}.json"


def is_part(path: Path) -> bool:
    """Tell whether a file in the folder of shards is one of them, or what is known of their texts, by its name."""
    return _PART.fullmatch(path.name) is not None and path.is_file()


def remove_parts(folder: Path) -> None:
    """Remove the shards in a folder, and the folder where nothing else is in it; nothing where there is none."""
    if not folder.is_dir():
        return
    for path in list(folder.iterdir()):
        if is_part(path):
            path.unlink()
    if not any(folder.iterdir()):
        folder.rmdir()


def read_tally(path: Path) -> Tally:
    """Read a stored tally.

    Raises:
        OutputError: It is missing or damaged.
    """
    try:
        return Tally.from_json(read_object(path))
    except (ValueError, KeyError, TypeError) as error:
        message = f"{path}: is no tally of an audit ({error!r}); run the audit anew with --overwrite (overwrite=True)"
        raise OutputError(message) from error


def _read_verdicts(path: Path, columns: pa.Schema) -> pa.Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.read_table(path, schema=columns, use_threads=False)
    except (OSError, pa.ArrowException) as error:
        message = (
            f"{path}: damaged verdicts of an audit ({error}); run the audit anew with --overwrite (overwrite=True)"
        )
        raise OutputError(message) from error


def _table(judged: Sequence[Judged], keys: Sequence[str]) -> pa.Table:
    import pyarrow as pa

    return pa.Table.from_pylist([_row(one, keys) for one in judged], schema=schema(keys))


def _row(judged: Judged, keys: Sequence[str]) -> dict[str, Any]:
    item, verdict = judged.item, judged.verdict
    evidence = verdict.evidence
    kinds: Sequence[float | None] = verdict.category_probabilities or (None,) * len(keys)
    return {
        "row_id": item.row_id if isinstance(item, Conversation) else item.position,
        # The system may name a file in bytes that are not UTF-8, which Parquet cannot hold.
        "file": None if item.file is None else item.file.encode(errors="replace").decode(),
        "line": item.line,
        "side": item.side,
        "turn": item.turn,
        "verdict": verdict.outcome,
        "refusal_probability": None if math.isnan(verdict.refusal_probability) else verdict.refusal_probability,
        "category": verdict.category,
        "group": verdict.group,
        **dict(zip(keys, kinds, strict=True)),
        "unscored_reason": verdict.unscored_reason,
        "further": list(verdict.further),
        "evidence_start": None if evidence is None else evidence.start,
        "evidence_end": None if evidence is None else evidence.end,
        "evidence_score": None if evidence is None else evidence.score,
        "category_set": list(verdict.category_set),
        "resolution": verdict.resolution,
    }
