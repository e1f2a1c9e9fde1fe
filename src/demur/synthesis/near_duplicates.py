"""Find texts that say the same in nearly the same characters, whatever their case, marks and typing slips."""

from __future__ import annotations

import re
import unicodedata
import zlib
from typing import TYPE_CHECKING

import numpy as np

from demur.synthesis.wording import INVISIBLE, SIGNS

if TYPE_CHECKING:
    from datasketch import MinHash
    from numpy.typing import NDArray

__all__ = ["NearDuplicates", "jaccard", "normalised", "shingles"]

# A slip of the pen costs as many shingles as they are long: words, or longer runs, would lose a short text to one.
_SHINGLE = 5
# What the bands must find of the texts that lie exactly at the threshold; all others above it are found more surely.
_RECALL = 0.9999
# `can't` and `can’t` are one word, and so is `cant`; by number, since the characters look like one another.
_APOSTROPHES = dict.fromkeys((0x27, 0x60, 0xB4, 0x2018, 0x2019, 0x201B, 0x2BC, 0xFF07))
_ELLIPSIS = re.compile(r"<\|\s*\.\.\.\s*\|>")
_FOLDED = {**_APOSTROPHES, **INVISIBLE}
_WORD = re.compile(rf"(?:[^\W_][{SIGNS}]*)+")


def normalised(text: str) -> str:
    """Fold what does not make another text: case, apostrophes, markdown and all other marks, white space, `<|...|>`.

    Vowel signs, tones and accents belong to their letters, and stay. A text of other marks alone, such as emoji, keeps
    them.

    Example:
        >>> normalised("**I can’t** help.") == normalised("i can't   help")
        True
    """
    folded = _ELLIPSIS.sub(" ", unicodedata.normalize("NFKC", text).casefold())
    words = " ".join(_WORD.findall(folded.translate(_FOLDED)))
    return words or " ".join(folded.split())


def shingles(text: str) -> NDArray[np.uint32]:
    """Return the hashes of all runs of five characters in the normalised text, each once, rising.

    *Shape:* `(n,)`; a shorter text is one run, an empty one has none.
    """
    folded = normalised(text)
    runs = {folded[i : i + _SHINGLE] for i in range(max(1, len(folded) - _SHINGLE + 1))} if folded else set()
    return np.unique(np.fromiter((zlib.crc32(run.encode("utf-8", "replace")) for run in runs), np.uint32, len(runs)))


def jaccard(one: NDArray[np.uint32], other: NDArray[np.uint32]) -> float:
    """Return |A ∩ B| / |A ∪ B| of two sets of hashes; nan where both are empty."""
    n_shared = np.intersect1d(one, other, assume_unique=True).size
    n_all = one.size + other.size - n_shared
    return n_shared / n_all if n_all else float("nan")


class NearDuplicates:
    """Keep texts, and find those that a text is a near duplicate of.

    MinHash (Broder 1997) in bands names the candidates, and the Jaccard index of the shingles decides: no text is
    called a duplicate by an estimate. Of texts exactly at the threshold the bands miss one in 10,000 by construction.
    """

    def __init__(self, *, threshold: float = 0.6, n_permutations: int = 128) -> None:
        """Set up an empty index.

        Args:
            threshold: Jaccard index from which two texts are near duplicates, above 0 and at most 1.
            n_permutations: Hashes a text.

        Raises:
            ValueError: The threshold is out of range, or too low for so few permutations.
        """
        from datasketch import MinHash, MinHashLSH

        bands, rows = _bands(threshold, n_permutations)
        self.threshold = threshold
        # They are hashes already. Copies share the permutations, whose drawing takes longer than their use.
        self._empty = MinHash(num_perm=n_permutations, hashfunc=int)
        self._index = MinHashLSH(num_perm=n_permutations, params=(bands, rows))
        self._shingles: dict[str, NDArray[np.uint32]] = {}
        self._order: dict[str, int] = {}

    def __len__(self) -> int:
        """Count the texts."""
        return len(self._shingles)

    def add(self, key: str, text: str) -> None:
        """Keep a text under a key of its own; an empty text is like no other.

        Raises:
            ValueError: The key is taken.
        """
        if key in self._shingles:
            message = f"key {key!r} is taken; give each text a key of its own"
            raise ValueError(message)
        self._order[key] = len(self._order)
        self._shingles[key] = hashes = shingles(text)
        if hashes.size:
            self._index.insert(key, self._sketch(hashes))

    def find(self, text: str) -> list[tuple[str, float]]:
        """Return the keys of the near duplicates of a text, each with its exact Jaccard index, the nearest first.

        Of equally near ones, the one that was added first.
        """
        hashes = shingles(text)
        if not hashes.size:
            return []
        candidates = sorted(self._index.query(self._sketch(hashes)), key=self._order.__getitem__)
        near = [(key, jaccard(hashes, self._shingles[key])) for key in candidates]
        return sorted((pair for pair in near if pair[1] >= self.threshold), key=lambda pair: -pair[1])

    def _sketch(self, hashes: NDArray[np.uint32]) -> MinHash:
        sketch = self._empty.copy()
        sketch.update_batch(hashes.tolist())
        return sketch


def _bands(threshold: float, n_permutations: int) -> tuple[int, int]:
    """Return number and size of the bands: the largest size r with 1 - (1 - t^r)^(n // r) >= 0.9999.

    Larger bands name fewer candidates in vain.
    """
    if not 0 < threshold <= 1:
        message = f"threshold {threshold}; give a Jaccard index above 0 and at most 1"
        raise ValueError(message)
    # The index needs two bands at least.
    sizes = range(n_permutations // 2, 0, -1)
    found = next((size for size in sizes if 1 - (1 - threshold**size) ** (n_permutations // size) >= _RECALL), None)
    if found is None:
        message = f"{n_permutations} permutations cannot find a Jaccard index of {threshold}; give more of them"
        raise ValueError(message)
    return n_permutations // found, found
