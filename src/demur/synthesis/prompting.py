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
from demur.llm.parameters import sent_parameters

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
    """Hold a prompt as it is written down: Jinja templates under a name and a version."""

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
            EndpointError: A parameter is none to give.
        """
        self.taxonomy = taxonomy
        self.name = file.digest(taxonomy)
        given = {**recipe.parameters, **({} if parameters is None else parameters)}
        self._sends_seed = given.get("seed", 0) is not None
        self.parameters = sent_parameters(recipe.parameters, parameters)
        self._recipe = recipe
        if file.user is None:
            message = f"prompt {file.name}-{file.version} has no `user` part; it is to name the plan of a row"
            raise RecipeError(message)
        self._where = f"prompt {file.name}-{file.version}"
        self._templates = {"system": self._template(file.system), "user": self._template(file.user)}
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
        messages = (Message("system", self._system(category)), Message("user", self._rendered("user", given)))
        seed = {"seed": cell.seed_of(attempt)} if self._sends_seed else {}
        return ChatRequest(messages, self.name, _ROW_SCHEMA, {**seed, **self.parameters})

    def _system(self, category: Category) -> str:
        if category.key not in self._systems:
            group = next(each for each in self.taxonomy.groups if each.key == category.group)
            given = {"taxonomy": self.taxonomy, "gate": self.taxonomy.gate, "category": category, "group": group}
            self._systems[category.key] = self._rendered("system", given)
        return self._systems[category.key]

    def _template(self, text: str) -> Any:  # noqa: ANN401  # jinja's own type, imported where it is used
        from jinja2 import StrictUndefined, TemplateSyntaxError
        from jinja2.sandbox import SandboxedEnvironment

        # A prompt is no HTML, and its quotation marks must stay what they are.
        environment = SandboxedEnvironment(
            undefined=StrictUndefined, autoescape=False, trim_blocks=True, lstrip_blocks=True
        )
        try:
            return environment.from_string(text)
        except TemplateSyntaxError as error:
            message = f"{self._where}: line {error.lineno}: {error.message}"
            raise RecipeError(message) from error

    def _rendered(self, part: str, given: Mapping[str, object]) -> str:
        from jinja2 import TemplateError

        try:
            return str(self._templates[part].render(given)).strip()
        except TemplateError as error:
            message = f"{self._where}: `{part}` cannot be filled in: {error}"
            raise RecipeError(message) from error


class CheckPrompt:
    """Turn a written row into a request to the model that judges it: a judge's own prompt, and two questions more."""

    def __init__(self, file: PromptFile, taxonomy: Taxonomy, parameters: Mapping[str, Any]) -> None:
        """Take the further questions; they stand after what a judge is told."""
        self._judge = JudgePrompt(taxonomy)
        self._further = file.system
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
