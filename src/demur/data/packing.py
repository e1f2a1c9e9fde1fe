"""Unpack a file while it is read, and lose nothing of one that was cut off but what is missing."""

from __future__ import annotations

import contextlib
import io
from typing import TYPE_CHECKING, BinaryIO, cast

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["PACKINGS", "packed_as", "unpacked"]

PACKINGS = {".gz": "gzip", ".zst": "zstd", ".zstd": "zstd"}
"""How a file is packed, by its last ending."""

_MARKS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_BUFFER_BYTES = 1 << 20


def packed_as(beginning: bytes) -> str | None:
    """Return how bytes are packed that begin so, or None."""
    return next((packing for mark, packing in _MARKS.items() if beginning.startswith(mark)), None)


@contextlib.contextmanager
def unpacked(path: Path, raw: io.FileIO, packing: str | None) -> Iterator[BinaryIO]:
    """Lend the bytes of an open file as they were before they were packed.

    Reading raises `EOFError` where a packed file ends before its end, once all that can be unpacked was read.

    Args:
        path: Where the file lies.
        raw: The file, at its beginning.
        packing: A value of `PACKINGS`; None where it is not packed.
    """
    source = raw if packing is None else _Unpacked(path, raw, packing)
    with io.BufferedReader(source, _BUFFER_BYTES) as stream:
        yield stream


class _Unpacked(io.RawIOBase):
    """Unpack by Arrow, which throws away what it has unpacked of a piece when it meets the end in the middle of it."""

    def __init__(self, path: Path, raw: io.FileIO, packing: str) -> None:
        self._path = path
        self._packing = packing
        self._stream = pa.CompressedInputStream(raw, packing)
        self._n_read = 0
        self._is_cut = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(cast("bytearray", buffer))
        if self._is_cut:
            raise EOFError
        try:
            piece = self._stream.read(len(view))
        except OSError as error:
            if "truncated" not in str(error).lower():
                raise
            self._is_cut = True
            piece = self._last_piece()
            if not piece:
                raise EOFError from error
        view[: len(piece)] = piece
        self._n_read += len(piece)
        return len(piece)

    def _last_piece(self) -> bytes:
        """Unpack the file once more up to where it was read, and from there byte by byte to where it breaks off."""
        found = bytearray()
        with self._path.open("rb") as file, pa.CompressedInputStream(file, self._packing) as stream:
            left = self._n_read
            while left:
                left -= len(stream.read(min(left, _BUFFER_BYTES)))
            with contextlib.suppress(OSError):
                while byte := stream.read(1):
                    found += byte
        return bytes(found)
