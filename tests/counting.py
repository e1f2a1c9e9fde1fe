"""Count work where a clock would tell how busy the machine is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokenizers import Tokenizer

__all__ = ["CountingTokenizer"]


class CountingTokenizer:
    """Tokenise as another tokenizer does, and count the characters that it is given.

    Attributes:
        n_characters: All characters so far, those given twice counted twice.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        """Take the tokenizer that does the work."""
        self._tokenizer = tokenizer
        self.n_characters = 0

    def encode(self, text: str, **options: Any) -> Any:
        """Count one text, and encode it."""
        self.n_characters += len(text)
        return self._tokenizer.encode(text, **options)

    def encode_batch(self, texts: Sequence[str], **options: Any) -> Any:
        """Count several texts, and encode them."""
        self.n_characters += sum(map(len, texts))
        return self._tokenizer.encode_batch(list(texts), **options)
