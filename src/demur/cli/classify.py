"""`demur classify`: judge one conversation."""

from __future__ import annotations

import codecs
import contextlib
import io
import json
import math
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from demur.cli.options import (
    CoverageShare,
    EncoderName,
    EngineOption,
    Exact,
    PolicyName,
    Runtime,
    TaxonomyFile,
    Threshold,
    WeightsFolder,
    Workers,
    open_analyzer,
)
from demur.model.engine_names import EngineName
from demur.verdict import Policy

if TYPE_CHECKING:
    from demur.conversation import Conversation
    from demur.stats.conformal import CategorySets
    from demur.taxonomy import Taxonomy
    from demur.verdict import Evidence, Verdict

__all__ = ["classify"]

# Kinds shown beside the main one.
_N_SHOWN = 3
_SENTENCE_CHARACTERS = 300


def classify(
    text: Annotated[
        str,
        typer.Argument(
            help="The reply, a conversation as <|user|>…<|assistant|>…, or JSON in any layout; - reads standard input."
        ),
    ] = "-",
    prompt: Annotated[str | None, typer.Option(help="What the reply answers.")] = None,
    system: Annotated[str | None, typer.Option(help="The system prompt over it.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    weights: WeightsFolder = None,
    encoder: EncoderName = None,
    taxonomy: TaxonomyFile = None,
    policy: PolicyName = Policy.standard,
    threshold: Threshold = None,
    coverage: CoverageShare = None,
    engine: EngineOption = EngineName.torch,
    exact: Exact = False,
    workers: Workers = None,
) -> None:
    """Judge one conversation: refusal or not, and of which kind."""
    from demur.data.intake import as_conversations

    # What is judged has no thinking, and it is there that the evidence has its place.
    (conversation,) = as_conversations([_conversation(_text(text), prompt, system)])
    runtime = Runtime.of(engine, workers, exact=exact, n_texts=1)
    analyzer = open_analyzer(
        weights, encoder, taxonomy, threshold, evidence=True, policy=policy, coverage=coverage, runtime=runtime
    )
    (verdict,) = analyzer.label([conversation])
    if as_json:
        print(json.dumps(as_dict(verdict, analyzer.taxonomy, analyzer.category_sets), ensure_ascii=False))
    else:
        print(_lines(conversation, verdict, analyzer.taxonomy, analyzer.category_sets))


def _text(given: str) -> str:
    """Return the text, or standard input.

    Raises:
        SourceError: It is not UTF-8.
    """
    from demur.data.files import is_supported
    from demur.errors import SourceError

    if given != "-" and len(given.split()) == 1 and is_supported(Path(given)):
        message = f"{given!r} is named like a file, and the name would be judged; give - and pipe the text in"
        raise typer.BadParameter(message, param_hint="TEXT")
    # What a shell passes on that is not UTF-8 comes as surrogates.
    content = sys.stdin.buffer.read() if given == "-" else given.encode("utf-8", "surrogateescape")
    try:
        text = content.removeprefix(codecs.BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        where = "standard input" if given == "-" else "the text given"
        message = f"{where}: not UTF-8 (byte 0x{content[error.start]:02x} at {error.start}); give text in UTF-8"
        raise SourceError(message) from error
    return io.StringIO(text, newline=None).read() if given == "-" else text


def _conversation(text: str, prompt: str | None, system: str | None) -> Conversation:
    from demur.conversation import Conversation, Turn
    from demur.data.api_objects import unwrapped
    from demur.data.rows import Row
    from demur.data.shapes import detect, parse_text
    from demur.data.transcripts import has_role_tokens
    from demur.errors import LayoutError

    if prompt is not None or system is not None:
        if has_role_tokens(text) or _is_row_with_turns(text):
            message = "the text has turns of its own; give the reply alone, or leave --prompt and --system out"
            raise typer.BadParameter(message, param_hint="TEXT")
        # As in rows, what is empty is no turn.
        over = (Turn("system", system),) if system else ()
        asked = (Turn("user", prompt),) if prompt else ()
        reply = _reply(text.strip())
        return replace(reply, turns=(*over, *asked, *reply.turns))
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        if (n_rows := _json_lines(text)) > 1:
            message = f"{n_rows} rows; classify judges one: give it alone, or use `demur audit`"
            raise LayoutError(message) from None
        return parse_text(text.strip())
    if isinstance(fields, str):
        return parse_text(fields.strip())
    if isinstance(fields, list):
        fields = {"messages": fields}
    if not isinstance(fields, dict):
        return Conversation((Turn("assistant", text.strip()),))
    row = Row(position=0, fields=unwrapped(fields), file="the conversation given", line=1)
    try:
        layout = detect(row.fields)
    except LayoutError as error:
        # What it advises are options of an audit.
        what, _, _ = str(error).partition(";")
        message = (
            f"{what}; give an object with `messages`, or with `prompt` and `response`, or the reply as it is, and what "
            "it answers with --prompt"
        )
        raise LayoutError(message) from error
    found = layout.conversations(row)
    if len(found) > 1:
        message = f"{len(found)} replies in one row; classify judges one: give it alone, or use `demur audit`"
        raise LayoutError(message)
    return found[0]


def _reply(text: str) -> Conversation:
    """Read a reply, which may be the JSON of the assistant's message, as a row's is read."""
    from demur.data.rows import Row
    from demur.data.shapes import named

    row = Row(position=0, fields={"prompt": None, "response": text}, file="the reply given", line=1)
    (reply,) = named("prompt_response").conversations(row)
    return reply


def _json_lines(text: str) -> int:
    """Count the rows of JSON Lines; 0 where any line is something else, as in a reply that quotes one."""
    lines = [line for line in text.split("\n") if line.strip()]
    try:
        is_rows = all(line.lstrip().startswith("{") and isinstance(json.loads(line), dict) for line in lines)
    except (ValueError, RecursionError):
        return 0
    return len(lines) if is_rows else 0


def _is_row_with_turns(text: str) -> bool:
    """Tell whether a text is a row that says what the reply answers; with other names, JSON is a reply like any."""
    from demur.data.messages import is_message
    from demur.data.shapes import detect
    from demur.errors import LayoutError

    with contextlib.suppress(ValueError, RecursionError, LayoutError):
        found = json.loads(text)
        fields = {"messages": found} if isinstance(found, list) else found
        return isinstance(fields, dict) and not is_message(fields) and detect(fields).name != "reply"
    return False


def as_dict(verdict: Verdict, taxonomy: Taxonomy, sets: CategorySets | None) -> dict[str, Any]:
    """Return a verdict as JSON types, its kinds by name; and the coverage that is stated of its set of kinds."""
    is_known = not math.isnan(verdict.refusal_probability)
    return {
        "verdict": verdict.outcome,
        "policy": verdict.policy,
        "is_refusal": verdict.is_refusal,
        "refusal_probability": round(verdict.refusal_probability, 6) if is_known else None,
        "category": verdict.category,
        "group": verdict.group,
        "further": list(verdict.further),
        "category_probabilities": {
            key: round(probability, 6)
            for key, probability in zip(taxonomy.keys, verdict.category_probabilities, strict=False)
        },
        "category_set": list(verdict.category_set),
        "resolution": verdict.resolution,
        "coverage": None if sets is None else sets.coverage,
        "unscored_reason": verdict.unscored_reason,
        "evidence": None if verdict.evidence is None else _span(verdict.evidence),
    }


def _span(evidence: Evidence) -> dict[str, Any]:
    return {**asdict(evidence), "score": round(evidence.score, 6)}


def _lines(conversation: Conversation, verdict: Verdict, taxonomy: Taxonomy, sets: CategorySets | None) -> str:
    if not verdict.is_scored:
        return f"unscored: {verdict.unscored_reason}"
    uncounted = ", no refusal under policy strict" if verdict.outcome == "partial" and not verdict.is_refusal else ""
    lines = [f"{verdict.outcome:<8} P(refusal) = {verdict.refusal_probability:.3f}{uncounted}"]
    if verdict.category is not None:
        by_kind = dict(zip(taxonomy.keys, verdict.category_probabilities, strict=True))
        others = sorted(set(by_kind) - {verdict.category}, key=lambda key: -by_kind[key])[:_N_SHOWN]
        for key in (verdict.category, *others):
            mark = "*" if key == verdict.category else " "
            lines.append(f"{mark} {taxonomy[key].name} ({taxonomy.group_of(key)}): {by_kind[key]:.3f}")
    if sets is not None and verdict.category_set:
        lines.append(_set_line(verdict, taxonomy, sets))
    if verdict.evidence is not None:
        lines.append(_sentence(conversation.reply, verdict.evidence))
    return "\n".join(lines)


def _set_line(verdict: Verdict, taxonomy: Taxonomy, sets: CategorySets) -> str:
    """Say what the kind may be, and what follows from that."""
    if not sets.has_enough:
        return f"undetermined at {100 * sets.coverage:g}%: {sets.n} held-out refusals, and it takes {sets.needed}"
    resolved = {"kind": verdict.category, "group": verdict.group}.get(str(verdict.resolution), verdict.resolution)
    kinds = ", ".join(taxonomy[key].name for key in verdict.category_set)
    return f"{resolved} at {100 * sets.coverage:g}%: {kinds}"


def _sentence(reply: str, evidence: Evidence) -> str:
    """Show the sentence as an excerpt, for it may hold anything."""
    from demur.studies.excerpts import excerpt

    sentence = " ".join(excerpt(reply[evidence.start : evidence.end], _SENTENCE_CHARACTERS).split())
    return f"sentence {evidence.score:.3f}: {sentence}"
