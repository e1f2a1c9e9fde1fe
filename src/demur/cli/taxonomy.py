"""`demur taxonomy`: show, check, render and extend a taxonomy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from demur.cli.options import Replace
from demur.errors import OutputError

if TYPE_CHECKING:
    from demur.taxonomy import Taxonomy

__all__ = ["app"]

app = typer.Typer(help="Show, check, render and extend the taxonomy.", no_args_is_help=True, rich_markup_mode=None)

File = Annotated[Path | None, typer.Argument(help="Taxonomy file, or its folder; the shipped one by default.")]


@app.command()
def show(
    file: File = None,
    category: Annotated[str | None, typer.Option(help="Show this category in full.")] = None,
) -> None:
    """Show the groups and categories, or one category in full: `show KEY`, or `show FILE --category KEY`."""
    if file is not None and category is None and not file.exists() and file.name == str(file) and not file.suffix:
        # A bare word that is no file is meant as a key, misspelt ones, too.
        file, category = None, str(file)
    taxonomy = _load(file)
    if category is not None:
        from demur.report.guide import category_guide

        print(category_guide(taxonomy[category]))
        return
    for group in taxonomy.groups:
        print(f"{group.name} ({group.key}): {group.definition}")
        for key in taxonomy.members(group.key):
            print(f"  {key:<24} {taxonomy[key].definition}")


@app.command()
def validate(file: File = None) -> None:
    """Check a taxonomy file; every problem is named by its key."""
    taxonomy = _load(file)
    print(
        f"valid: {taxonomy.name} {taxonomy.version}, {len(taxonomy)} categories in {len(taxonomy.groups)} groups, "
        f"fingerprint {taxonomy.fingerprint[:12]}"
    )


@app.command()
def guide(
    file: File = None,
    out: Annotated[Path | None, typer.Option(help="File to write; standard output by default.")] = None,
    overwrite: Replace = False,
) -> None:
    """Render the annotation guide as Markdown."""
    from demur.report.guide import guide as render
    from demur.studies.writing import require_room

    text = render(_load(file))
    if out is None:
        print(text, end="")
    else:
        require_room([out], overwrite=overwrite)
        try:
            out.write_text(text, encoding="utf-8")
        except OSError as error:
            message = f"cannot write {str(out)!r}: {error.strerror or error}; give a file in a folder that exists"
            raise OutputError(message) from error


@app.command("new-category")
def new_category(
    key: Annotated[str, typer.Argument(help="Key of the new category, in snake case.")],
    group: Annotated[str, typer.Option(help="Key of its group, such as should_not or cannot.")],
    out: Annotated[
        Path, typer.Option(help="Folder of your taxonomy; it gets a copy of the shipped one if it holds none.")
    ],
    name: Annotated[str | None, typer.Option(help="Its name; the key in words by default.")] = None,
) -> None:
    """Write the stub of a further category, to be filled by hand, into a copy of the taxonomy."""
    from demur.stubs import copy_taxonomy
    from demur.stubs import new_category as write_stub

    path = copy_taxonomy(out)
    line = write_stub(path, key, group=group, name=name)
    print(f"{path}:{line}: the stub of {key!r}; fill its placeholders, then: demur taxonomy validate {path}")


def _load(file: Path | None) -> Taxonomy:
    from demur.taxonomy import Taxonomy

    return Taxonomy.load(file)
