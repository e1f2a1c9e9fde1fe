"""What README and guide say can be done."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.main import get_command

from demur.cli import app

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
OTHERS = [ROOT / folder / "README.md" for folder in ("benchmarks", "src/demur/weights", "synth", "taxonomy")]
TEXT = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)


def blocks(language: str) -> list[str]:
    """Return the fenced blocks of a language, of all pages."""
    return re.findall(rf"^```{language}\n(.*?)^```", TEXT, flags=re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """Return what the headings of a page are linked by."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings}


def console_lines() -> list[str]:
    """Return the commands of the console blocks, without their comments."""
    lines = [line.split("  #")[0].strip() for block in blocks("console") for line in block.splitlines()]
    return [line for line in lines if line]


@pytest.mark.parametrize("line", sorted({line for line in console_lines() if line.startswith("demur ")}))
def test_a_command_of_the_guide_is_one_that_the_command_line_takes(line: str) -> None:
    """Its subcommand exists, and takes the options and arguments given."""
    command = get_command(app)
    words = shlex.split(line)[1:]
    while hasattr(command, "commands"):
        command = command.commands[words.pop(0)]
    command.make_context("demur", words)


@pytest.mark.parametrize("line", [line for line in console_lines() if line.startswith("make ")])
def test_a_make_command_of_the_readme_is_a_target(line: str) -> None:
    """The Makefile has a rule of that name."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(rf"^{line.split()[1]}:", makefile, flags=re.MULTILINE)


def test_a_make_target_that_the_readme_speaks_of_is_there() -> None:
    """In its prose, too."""
    targets = set(re.findall(r"`make ([\w-]+)`", TEXT))
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert targets >= {"check", "test", "test-slow", "test-ray"}
    assert not [name for name in targets if not re.search(rf"^{name}:", makefile, flags=re.MULTILINE)]


def test_ci_calls_the_test_command_of_the_readme() -> None:
    """What the README promises is what CI runs."""
    assert "make test" in console_lines()
    assert "exec make test" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_the_python_of_the_readme_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """Each Python block runs, and prints what its comment says."""
    for block in blocks("python"):
        exec(compile(block, "README.md", "exec"), {})  # noqa: S102  # our own text
        printed = capsys.readouterr().out
        for line in re.findall(r"^print\(.*?\)  # (.+)$", block, flags=re.MULTILINE):
            assert line in printed


def test_the_readme_of_the_written_rows_names_every_file_of_them() -> None:
    """The corpus is one entry; a file that is trained on and told of nowhere could be anybody's."""
    folder = ROOT / "synth"
    text = (folder / "README.md").read_text(encoding="utf-8").split("## Writing more")[0]
    names = [path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*.jsonl"))]
    assert "**`corpus/*.jsonl`**" in text
    assert not [name for name in names if not name.startswith("corpus/") and f"**`{name}`**" not in text]


@pytest.mark.parametrize("page", [*PAGES, *OTHERS], ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_of_a_page_to_a_file_leads_somewhere(page: Path) -> None:
    """Links into the repository name files and folders that are there, and headings that these have."""
    links = re.findall(r"\]\(([^)]+)\)", page.read_text(encoding="utf-8").replace("\n", " "))
    parts = [link.partition("#") for link in links if "://" not in link]
    # Without a name, a link leads within the page.
    targets = [(page.parent / name if name else page, heading) for name, _, heading in parts]
    assert not [path for path, _ in targets if not path.exists()]
    assert not [heading for path, heading in targets if heading and heading not in anchors(path)]


def test_the_readme_leads_to_every_page_of_the_guide() -> None:
    """A page that nothing links to is read by nobody."""
    readme = PAGES[0].read_text(encoding="utf-8")
    assert len(PAGES) > 1
    assert not [page.name for page in PAGES[1:] if f"(docs/{page.name})" not in readme]
