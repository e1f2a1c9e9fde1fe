"""Files are there whole or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from demur.errors import OutputError
from demur.studies.writing import writing

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("error", [OSError("full"), ValueError(), KeyboardInterrupt()])
def test_what_fails_leaves_nothing_but_what_was_there(error: BaseException, tmp_path: Path) -> None:
    """Half a file would take the room that there is not."""
    path = tmp_path / "out.json"
    path.write_text("before", encoding="utf-8")

    def fail() -> None:
        with writing(path) as temporary:
            temporary.write_text("half", encoding="utf-8")
            raise error

    with pytest.raises(OutputError if isinstance(error, OSError) else type(error)):
        fail()
    assert [each.name for each in tmp_path.iterdir()] == ["out.json"]
    assert path.read_text(encoding="utf-8") == "before"
