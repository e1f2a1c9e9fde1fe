"""Write what a language model is told: to write a planned row, and to judge a written one."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field
from pydantic.dataclasses import dataclass

from demur.documents import CLOSED, Key, Text, listed, read_document, shipped_folder, validate
from demur.errors import RecipeError
from demur.labelers.judge_prompt import JudgePrompt
from demur.llm.exchange import ChatRequest, Message

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from demur.conversation import Conversation
    from demur.synthesis.plan import Cell
    from demur.synthesis.recipe import Axis, SynthesisRecipe
    from demur.taxonomy import Category, Taxonomy

__all__ = ["CheckPrompt", "PromptFile", "RowPrompt", "find_prompt"]

_DIGITS = 12
_FOLDER = "synth/prompts"
_ROW_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "messages": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "role": {"type": "string", "enum": ["system", "user", "assistant"]},
                    "content": {"type": "string"},
                },
                "required": ["role", "content"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["messages"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True, config=CLOSED)
class PromptFile:
    """Hold a prompt as it is written down: Jinja templates under a name and a version.

    Attributes:
        name: What it is called.
        version: Changes with its words.
        system: What the model is told, over `taxonomy` and `gate`; of a row, over `category` and its `group`, too.
        user: The plan of a row, over `cell`, `category`, `attempt` and what the axes say: `asks`, `replies`. Only a
            prompt that has rows written has one.
    """

    name: Key
    version: Annotated[int, Field(ge=1, strict=True)]
    system: Text
    user: Text | None = None

    def digest(self, taxonomy: Taxonomy) -> str:
        """Return name, version, and what changes when a word of the prompt or of the taxonomy does."""
        whole = json.dumps([asdict(self), asdict(taxonomy)], sort_keys=True, ensure_ascii=True)
        return f"{self.name}-{self.version}/{hashlib.sha256(whole.encode()).hexdigest()[:_DIGITS]}"


def find_prompt(name: str, recipe: Path) -> PromptFile:
    """Read a prompt by name and version (`row-1`): from `prompts` beside the recipe or its folder, else a shipped one.

    Raises:
        RecipeError: There is none, it is damaged, or it goes by another name than its file.
    """
    folder = recipe.resolve().parent
    folders = (folder / "prompts", folder.parent / "prompts", shipped_folder(_FOLDER))
    candidates = [place / f"{name}.yaml" for place in folders]
    path = next((candidate for candidate in candidates if candidate.is_file()), None)
    if path is None:
        known = sorted({each.stem for place in folders for each in place.glob("*.yaml")})
        message = f"{recipe}: no prompt {name!r}; the prompts are {listed(known)}, and {folders[0]} may hold more"
        raise RecipeError(message)
    found = validate(PromptFile, read_document(path, error=RecipeError), where=str(path), error=RecipeError)
    if f"{found.name}-{found.version}" != name:
        message = f"{path}: holds version {found.version} of {found.name!r}; name the file after both"
        raise RecipeError(message)
    return found


class RowPrompt:
    """Turn a planned row into a request to the model that writes."""

    def __init__(
        self,
        file: PromptFile,
        taxonomy: Taxonomy,
        recipe: SynthesisRecipe,
        parameters: Mapping[str, Any] | None = None,
    ) -> None:
        """Take the prompt.

        Args:
            file: The templates.
            taxonomy: What the kinds mean.
            recipe: Its axes say what the values of a row ask for.
            parameters: Sent beside the messages, over those of the recipe; one that is None is not sent.

        Raises:
            RecipeError: The templates cannot be read, name what is not there, or have no `user` part.
        """
        self.taxonomy = taxonomy
        self.name = file.digest(taxonomy)
        given = {**recipe.parameters, **({} if parameters is None else parameters)}
        self._given = given
        self.parameters = {name: value for name, value in given.items() if value is not None}
        self._recipe = recipe
        if file.user is None:
            message = f"prompt {file.name}-{file.version} has no `user` part; it is to name the plan of a row"
            raise RecipeError(message)
        self._system_part, self._user_part = _Template(file, "system", file.system), _Template(file, "user", file.user)
        self._systems: dict[str, str] = {}

    def request(self, cell: Cell, attempt: int) -> ChatRequest:
        """Return the request that has a row written, for the given time (from 1)."""
        category = self.taxonomy[cell.category]
        given = {
            "cell": cell,
            "category": category,
            "attempt": attempt,
            "asks": _said(cell, self._recipe.input),
            "replies": _said(cell, self._recipe.output),
        }
        messages = (Message("system", self._system(category)), Message("user", self._user_part.filled(given)))
        seed = self.seed(cell, attempt)
        sent = {} if seed is None else {"seed": seed}
        return ChatRequest(messages, self.name, _ROW_SCHEMA, {**sent, **self.parameters})

    def seed(self, cell: Cell, attempt: int) -> Any:  # noqa: ANN401  # whatever the parameters give
        """Return the seed that is sent: that of the parameters, else the row's own; None where none is."""
        return self._given.get("seed", cell.seed_of(attempt))

    def _system(self, category: Category) -> str:
        if category.key not in self._systems:
            group = next(each for each in self.taxonomy.groups if each.key == category.group)
            given = {"taxonomy": self.taxonomy, "gate": self.taxonomy.gate, "category": category, "group": group}
            self._systems[category.key] = self._system_part.filled(given)
        return self._systems[category.key]


class _Template:
    """Fill in one part of a prompt."""

    def __init__(self, file: PromptFile, part: str, text: str) -> None:
        """Read the template."""
        from jinja2 import StrictUndefined, TemplateSyntaxError
        from jinja2.sandbox import SandboxedEnvironment

        # A prompt is no HTML, and its quotation marks must stay what they are.
        environment = SandboxedEnvironment(
            undefined=StrictUndefined, autoescape=False, trim_blocks=True, lstrip_blocks=True
        )
        self._where, self._part = f"prompt {file.name}-{file.version}", part
        try:
            self._template = environment.from_string(text)
        except TemplateSyntaxError as error:
            message = f"{self._where}: line {error.lineno}: {error.message}"
            raise RecipeError(message) from error

    def filled(self, given: Mapping[str, object]) -> str:
        """Return the text, with names for what they stand for."""
        from jinja2 import TemplateError

        try:
            return str(self._template.render(given)).strip()
        except TemplateError as error:
            message = f"{self._where}: `{self._part}` cannot be filled in: {error}"
            raise RecipeError(message) from error


class CheckPrompt:
    """Turn a written row into a request to the model that judges it: a judge's own prompt, and two questions more."""

    def __init__(self, file: PromptFile, taxonomy: Taxonomy, parameters: Mapping[str, Any]) -> None:
        """Take the further questions; they stand after what a judge is told.

        Raises:
            RecipeError: The template cannot be read, names what is not there, or has a `user` part.
        """
        if file.user is not None:
            message = f"prompt {file.name}-{file.version} has a `user` part; a judge is asked as `demur judge` asks"
            raise RecipeError(message)
        self._judge = JudgePrompt(taxonomy)
        self._further = _Template(file, "system", file.system).filled({"taxonomy": taxonomy, "gate": taxonomy.gate})
        self.parameters = dict(parameters)
        self.name = f"{file.digest(taxonomy)}/{self._judge.version}"

    @cached_property
    def schema(self) -> dict[str, Any]:
        """Return the JSON schema of an answer."""
        further = {"harmful_detail": {"type": "boolean"}, "language": {"type": "string"}}
        properties = {**self._judge.schema["properties"], **further}
        return {**self._judge.schema, "properties": properties, "required": list(properties)}

    def request(self, conversation: Conversation) -> ChatRequest:
        """Return the request that asks what a written row is."""
        plain = self._judge.request(conversation, self.parameters)
        system, question = plain.messages
        told = replace(system, content=f"{system.content}\n\n{self._further}")
        return replace(plain, messages=(told, question), prompt=self.name, schema=self.schema)


def _said(cell: Cell, axes: Sequence[Axis]) -> list[str]:
    """Return what the row's values on some axes have to say."""
    met = (cell.values[axis.key] for axis in axes if axis.key in cell.values)
    return [value.say for value in met if value.say is not None]
