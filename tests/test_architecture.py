"""Hold the house to its plan: imports point one way, modules stay small, and the door opens quickly.

Every `import` of one of our modules counts, wherever it stands: at the top, inside of a function, or under
`if TYPE_CHECKING`. An import for types alone does nothing at run time, but who has to know a type has to know its
module, so it must point downward like any other. What `demur/__init__.py` loads by name on demand it names as strings,
and is not read: it stands on the floor of the door, which may know everything but the command line.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "demur"

HEAVY = {"matplotlib", "numpy", "openai", "pandas", "pyarrow", "scipy", "tokenizers", "torch", "transformers"}

WORDS = ("errors", "documents", "taxonomy", "stubs", "crosswalk", "conversation", "kinds", "verdict")
# From the ground up. A module may import from its own floor and from those before it.
FLOORS: tuple[tuple[str, ...], ...] = (
    WORDS,
    ("data",),
    ("stats",),
    ("llm",),
    ("model",),
    ("labelers",),
    ("studies",),
    ("synthesis",),
    ("report",),
    ("api", "__init__"),
    ("cli",),
    ("__main__",),
)


def module_name(path: Path) -> str:
    """Return the dotted name of a module; of a package, that of its folder."""
    parts = ("demur", *path.relative_to(PACKAGE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def floor_of(module: str) -> int:
    """Return the floor that a module stands on, from 0."""
    room = module.removeprefix("demur").strip(".").split(".")[0] or "__init__"
    return next(i for i, rooms in enumerate(FLOORS) if room in rooms)


def imported(module: str) -> set[str]:
    """Return our modules that a module imports; a name imported from a package is a module where there is one."""
    tree = ast.parse(MODULES[module].read_text(encoding="utf-8"))
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}:{node.lineno}: a relative import; write the whole name"
            whole = {f"{node.module}.{alias.name}" for alias in node.names}
            names |= (whole & MODULES.keys()) or {str(node.module)}
    return {name for name in names if name in MODULES} - {module}


GRAPH = {module: imported(module) for module in MODULES}


def foreign(module: str) -> set[str]:
    """Return the packages of others that a module imports when it is imported itself, `if TYPE_CHECKING` left out."""
    tree = ast.parse(MODULES[module].read_text(encoding="utf-8"))
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(str(node.module).split(".")[0])
    return names - {"demur"}


def test_the_parser_sees_imports_wherever_they_stand() -> None:
    """At the top, for types alone, and inside of a function: one known case of each."""
    assert "demur.data.rendering" in GRAPH["demur.labelers.classifier"]
    assert "demur.model.targets" in GRAPH["demur.model.training"]
    assert "demur.model.network" in GRAPH["demur.model.weights"]


@pytest.mark.parametrize("module", MODULES)
def test_every_module_stands_on_a_floor(module: str) -> None:
    """A new room has to be put somewhere: add it to `FLOORS`."""
    room = module.removeprefix("demur").strip(".").split(".")[0] or "__init__"
    assert room in {name for rooms in FLOORS for name in rooms}


@pytest.mark.parametrize("module", MODULES)
def test_imports_point_down(module: str) -> None:
    """Nothing is imported from a floor above."""
    above = {name for name in GRAPH[module] if floor_of(name) > floor_of(module)}
    assert not above, f"{module} imports from above: {', '.join(sorted(above))}"


@pytest.mark.parametrize("clock", ["perf_counter", "process_time", "thread_time", "monotonic"])
def test_no_test_reads_a_clock(clock: str) -> None:
    """It would tell how busy the machine is: count the work. What waits for a process gives up at some time."""
    reads = re.compile(rf"\b{clock}(?:_ns)?\(")
    tests = Path(__file__).parent
    found = {path.name for path in tests.rglob("*.py") if reads.search(path.read_text(encoding="utf-8"))}
    assert found <= {"processes.py"}


def test_no_modules_import_each_other() -> None:
    """Inside of a floor, too, imports go one way: there is an order in which all modules could be written."""
    try:
        TopologicalSorter(GRAPH).prepare()
    except CycleError as error:
        pytest.fail(f"these import each other: {' → '.join(error.args[1])}")


def test_the_model_knows_nothing_of_reports() -> None:
    """Neither by import nor by way of what it imports."""
    reached = {module for module in MODULES if module.startswith("demur.model")}
    while more := {name for module in reached for name in GRAPH[module]} - reached:
        reached |= more
    assert not {module for module in reached if module.startswith(("demur.report", "demur.studies", "demur.cli"))}


@pytest.mark.parametrize("module", [module for module in MODULES if floor_of(module) < floor_of("demur.model")])
def test_words_data_and_statistics_need_no_network_library(module: str) -> None:
    """They work where torch is not installed, and are quick to import."""
    assert not foreign(module) & {"torch", "transformers", "safetensors"}


@pytest.mark.parametrize("module", MODULES)
def test_modules_are_small(module: str) -> None:
    """400 lines at most."""
    assert len(MODULES[module].read_text(encoding="utf-8").splitlines()) <= 400


@pytest.mark.parametrize("module", MODULES)
def test_modules_are_named_after_what_they_hold(module: str) -> None:
    """`utils`, `helpers` and `common` hold anything."""
    assert module.rsplit(".", maxsplit=1)[-1].strip("_") not in {"utils", "util", "helpers", "helper", "common", "misc"}


@pytest.mark.parametrize("module", ["demur", "demur.cli"])
def test_the_door_opens_without_heavy_libraries(module: str) -> None:
    """`demur --help` must not wait for torch: heavy libraries are imported where they are used."""
    code = f"import json, sys, {module}; print(json.dumps(sorted(sys.modules)))"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    heavy = {
        "matplotlib",
        "numpy",
        "openai",
        "pandas",
        "pyarrow",
        "scipy",
        "seaborn",
        "tokenizers",
        "torch",
        "transformers",
    }
    assert not heavy & set(json.loads(output.stdout))
