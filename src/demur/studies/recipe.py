"""Say in a file what weights are trained on: which sources, how much each counts, what is balanced, which settings."""

from __future__ import annotations

from dataclasses import field
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from demur.documents import CLOSED, Key, Text, fingerprint, listed, raise_problems, read_document, validate, written_out
from demur.errors import RecipeError
from demur.model.settings import TrainingSettings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = ["Balance", "Recipe", "Source", "document_of", "folders_for", "shipped_document"]

Sort = Literal["recipe", "plan"]
_SORTS: Mapping[Sort, str] = MappingProxyType(
    {"recipe": "a recipe of training, as `demur train --recipe` takes", "plan": "a plan, as `demur ablate` takes"}
)

_Factor = Annotated[float, Field(ge=0, strict=True, allow_inf_nan=False)]
_Confidence = Annotated[float, Field(gt=0.5, le=1, strict=True)]
_Share = Annotated[float, Field(gt=0, le=1, strict=True)]
_Count = Annotated[int, Field(ge=1, strict=True)]


@dataclass(frozen=True, slots=True, config=CLOSED)
class Source:
    """Name a file of labelled rows, or a folder of such files, and say how far it is believed.

    Attributes:
        path: Where it lies, relative to the folders that the recipe is used with.
        weight: Weight of each row in the loss; 1 by default, and 0.3 for rows that are marked `weak`. At 0, rows are
            not trained on, and still choose the epoch, calibrate and measure where they are held out.
        confidence: Probability that a label is right, which softens the gate's target; 1 by default, and 0.95 for rows
            that are marked `weak`.
        sample: At most so many rows, drawn by the seed: a larger sample holds the smaller one. All by default.
        texts: Files or folders with the messages, by id, of rows that carry none.
        teacher_share: Share of the target that is what teachers think of these rows, where there are teachers; that of
            the settings by default. 0 for labels that are surer than the teachers.
    """

    path: Text
    weight: _Factor | None = None
    confidence: _Confidence | None = None
    sample: _Count | None = None
    texts: tuple[Text, ...] = ()
    teacher_share: Annotated[float, Field(ge=0, le=1, strict=True)] | None = None


@dataclass(frozen=True, slots=True, config=CLOSED)
class Balance:
    """Weigh rare kinds up in their loss: min(cap, (rows of the commonest kind / rows of this one) ** exponent).

    Attributes:
        exponent: 0 leaves the kinds as they come, 1 gives each the same weight in sum, before sources are weighed.
        cap: Weight that no kind exceeds.
    """

    exponent: _Factor = 0.0
    cap: Annotated[float, Field(ge=1, strict=True, allow_inf_nan=False)] = 5.0


@dataclass(frozen=True, slots=True, config=CLOSED)
class Recipe:
    """Hold all that decides, beside encoder and taxonomy, what weights come out of training.

    Attributes:
        name: What the recipe is called.
        sources: What is trained on; of rows with a `split`, only `train` is read.
        avoid: Files whose prompts must not be trained on: those that the result is to be evaluated on. Messages that
            their rows lack are looked up in the texts of all sources.
        balance: How rare kinds are weighted up.
        hard_negative_weight: Factor of the weight of replies that comply, and that the keyword list calls refusals.
        share: Share of each source's rows that is read, for a quick look; drawn as `sample` draws.
        held_out_seed: Draws the prompts that are held out, where not the seed of the settings does: trainings of
            several seeds that are to be averaged hold out the same ones.
        settings: How the network is fitted.
    """

    name: Key
    sources: Annotated[tuple[Source, ...], Field(min_length=1)]
    avoid: tuple[Text, ...] = ()
    balance: Balance = Balance()
    hard_negative_weight: _Factor = 1.0
    share: _Share = 1.0
    held_out_seed: Annotated[int, Field(ge=0, strict=True)] | None = None
    settings: TrainingSettings = field(default_factory=TrainingSettings)

    @classmethod
    def load(cls, name_or_path: str | Path) -> Recipe:
        """Read a shipped recipe by its name, or any other by its path.

        Raises:
            RecipeError: The file is missing or damaged, is a plan, has a field that is unknown or out of range, or
                names a source twice; the message names file and field.
        """
        path, document = document_of(name_or_path, "recipe")
        recipe = validate(cls, document, where=str(path), error=RecipeError)
        raise_problems(_contradictions(recipe), where=str(path), error=RecipeError)
        return recipe

    @classmethod
    def of_files(
        cls,
        sources: Sequence[Path],
        *,
        avoid: Sequence[Path] = (),
        texts: Sequence[Path] = (),
        settings: TrainingSettings,
    ) -> Recipe:
        """Write the plain recipe of files given as arguments: nothing sampled, nothing balanced."""
        of_texts = tuple(str(path) for path in texts)
        return cls(
            name="files",
            sources=tuple(Source(str(path), texts=of_texts) for path in sources),
            avoid=tuple(str(path) for path in avoid),
            settings=settings,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the whole content, defaults written out, ready for `json.dumps`."""
        return written_out(self)

    @property
    def texts(self) -> tuple[str, ...]:
        """Return the files or folders that hold texts for any source, each once."""
        return tuple(dict.fromkeys(path for source in self.sources for path in source.texts))

    @property
    def parting_seed(self) -> int:
        """Return the seed that draws the held-out prompts."""
        return self.settings.seed if self.held_out_seed is None else self.held_out_seed

    @property
    def record(self) -> dict[str, Any]:
        """Return what the manifest of weights records of it: digest and content."""
        return {"sha256": self.sha256, **self.to_json()}

    @property
    def sha256(self) -> str:
        """Return the hex digest of the content, which comments and order of fields do not change."""
        return fingerprint(self)


def folders_for(name_or_path: str | Path, data: Path | None) -> list[Path]:
    """Name where a document's files are looked up: the data folder, then its own folder and those above it."""
    around = shipped_document(name_or_path).resolve().parents
    return [*([] if data is None else [data]), *around]


def document_of(name_or_path: str | Path, sort: Sort) -> tuple[Path, object]:
    """Read a recipe, or a plan: where it lies, and what is in it.

    Raises:
        RecipeError: It is missing or damaged, or of the other sort.
    """
    path = shipped_document(name_or_path, sort)
    document = read_document(path, error=RecipeError)
    met = _sort_of(document)
    if met not in (None, sort):
        message = f"{path}: is {_SORTS[met]}; what is asked for here is {_SORTS[sort]}"
        raise RecipeError(message)
    return path, document


def _sort_of(document: object) -> Sort | None:
    """Tell a plan from a recipe; None for what is neither."""
    if not isinstance(document, dict):
        return None
    return "plan" if "variants" in document else "recipe" if "sources" in document else None


def shipped_document(name_or_path: str | Path, sort: Sort = "recipe") -> Path:
    """Take a bare name for a shipped recipe or plan, and everything else for a path.

    Args:
        name_or_path: The name, or the path.
        sort: What is offered where nothing of that name is shipped.

    Raises:
        RecipeError: Nothing of that name is shipped.
    """
    path = Path(name_or_path)
    if path.suffix or len(path.parts) != 1:
        return path
    folder = Path(str(files("demur") / "recipes"))
    shipped = sorted(folder.glob("*.yaml"))
    if str(name_or_path) not in [each.stem for each in shipped]:
        offered = [each.stem for each in shipped if _sort_of(read_document(each, error=RecipeError)) == sort]
        message = f"no {sort} {str(name_or_path)!r} is shipped; give a YAML file, or one of {listed(offered)}"
        raise RecipeError(message)
    return folder / f"{name_or_path}.yaml"


def _contradictions(recipe: Recipe) -> Iterator[str]:
    """Yield every problem that no single field shows."""
    met: set[str] = set()
    for place, source in enumerate(recipe.sources):
        if source.path in met:
            yield f"sources[{place}].path: {source.path!r} stands twice; give its rows one weight"
        met.add(source.path)
