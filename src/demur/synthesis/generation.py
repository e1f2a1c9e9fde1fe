"""Have planned rows written by a language model, checked, judged by another prompt, and kept only where all agree."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from demur.conversation import Conversation
from demur.llm.parameters import sent_parameters
from demur.synthesis.answers import Judgement, Problem, read_judgement, read_row
from demur.synthesis.checks import judgement_problem, row_problem
from demur.synthesis.decisions import Decision, account
from demur.synthesis.duplicates import Seen
from demur.synthesis.plan import Plan
from demur.synthesis.prompting import CheckPrompt, RowPrompt, find_prompt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from demur.llm.client import Client, Estimate
    from demur.llm.exchange import Answer, Reply
    from demur.synthesis.decisions import Accounts, Fate
    from demur.synthesis.journal import Journal
    from demur.synthesis.plan import Cell
    from demur.synthesis.recipe import SynthesisRecipe
    from demur.taxonomy import Taxonomy

__all__ = ["Generation"]

# Rows that are written before they are judged, at most, for each request at a time: the two clients ask in turn, so
# that one budget serves both. It begins with one and doubles, or a small budget would be spent on writing alone. A
# batch takes hours, however large.
_CHUNK_PER_SLOT, _BATCH_CHUNK = 16, 50_000
_CHECK_PARAMETERS: Mapping[str, Any] = {"temperature": 0.0, "max_tokens": 4096}
# A conversation of some 150 words as JSON; a judge's sentence, verdict and kinds.
_ROW_TOKENS, _JUDGEMENT_TOKENS = 300, 80
_STAND_IN = "so it is asked about this and that, with a reason or two, as people do; " * 3


@dataclass(frozen=True, slots=True)
class Generation:
    """Go through a plan, attempt by attempt.

    Attributes:
        recipe: What is wanted.
        plan: The rows.
        taxonomy: What the kinds mean.
        writer: Asks the model that writes.
        row_prompt: What it is told.
        checker: Asks the model that judges; it may be the same model.
        check_prompt: What that is told.
        avoided: Rows that must not be written again.
    """

    recipe: SynthesisRecipe
    plan: Plan
    taxonomy: Taxonomy
    writer: Client
    row_prompt: RowPrompt
    checker: Client
    check_prompt: CheckPrompt
    avoided: Seen = field(default_factory=Seen)

    @classmethod
    def of(
        cls,
        recipe: SynthesisRecipe,
        taxonomy: Taxonomy,
        *,
        recipe_file: Path,
        writer: Client,
        checker: Client,
        parameters: Mapping[str, Any] | None = None,
        judge_parameters: Mapping[str, Any] | None = None,
        avoided: Seen | None = None,
    ) -> Generation:
        """Plan the rows of a recipe, and read its prompts.

        Args:
            recipe: What is wanted, with its categories written out.
            taxonomy: What the kinds mean.
            recipe_file: Where the recipe is from; prompts may stand beside it.
            writer: Asks the model that writes.
            checker: Asks the model that judges.
            parameters: Sent to the writer beside the messages, over those of the recipe; None leaves one out.
            judge_parameters: Sent to the judge, over temperature 0 and 4,096 tokens at most; None leaves one out.
            avoided: Rows that must not be written again; None for none.

        Raises:
            RecipeError: A prompt is missing or damaged.
            EndpointError: A parameter is none to give.
        """
        sent = sent_parameters(_CHECK_PARAMETERS, judge_parameters)
        return cls(
            recipe=recipe,
            plan=Plan.of(recipe),
            taxonomy=taxonomy,
            writer=writer,
            row_prompt=RowPrompt(find_prompt(recipe.prompt, recipe_file), taxonomy, recipe, parameters),
            checker=checker,
            check_prompt=CheckPrompt(find_prompt(recipe.check, recipe_file), taxonomy, sent),
            avoided=Seen() if avoided is None else avoided,
        )

    @property
    def provenance(self) -> dict[str, Any]:
        """Return what every row carries beside its own seed, attempt and axes: recipe, prompts, taxonomy, models."""
        return {
            "recipe": {"name": self.recipe.name, "sha256": self.recipe.sha256},
            "prompt": self.row_prompt.name,
            "check": self.check_prompt.name,
            "taxonomy": self.taxonomy.fingerprint,
            "model": self.writer.endpoint.model,
            "judge": self.checker.endpoint.model,
        }

    @property
    def manifest(self) -> dict[str, Any]:
        """Return all that decides what is written and kept; a run goes on only under an equal one."""
        return {
            **self.provenance,
            "plan": self.plan.digest,
            "endpoint": self.writer.endpoint.url,
            "judge_endpoint": self.checker.endpoint.url,
            "parameters": self.row_prompt.parameters,
            "judge_parameters": self.check_prompt.parameters,
            "avoided": self.avoided.digest,
        }

    def estimates(self) -> tuple[Estimate, Estimate]:
        """Say what writing every row once, then judging each, would come to; a rejected one is written again."""
        rows = (self.row_prompt.request(cell, 1) for cell in self.plan.cells)
        written = self.writer.estimate(rows, answer_tokens=_ROW_TOKENS, is_usable=_is_row)
        # What is judged is not known yet: a stand-in of the usual length, and each row another one.
        talks = (Conversation.of(f"{cell.id}: {_STAND_IN}", f"{cell.leaf}: {_STAND_IN}") for cell in self.plan.cells)
        questions = map(self.check_prompt.request, talks)
        judged = self.checker.estimate(
            questions, answer_tokens=_JUDGEMENT_TOKENS, is_usable=self._is_judgement, before=written
        )
        return written, judged

    def run(self, journal: Journal, progress: Callable[[Decision], None] | None = None) -> Accounts:
        """Ask for every row that the journal does not settle, and write each decision into it.

        Args:
            journal: What was decided before; it is written as decisions are made.
            progress: Told each decision.

        Raises:
            BudgetError: There is no room for the next request; what was paid for is kept.
            EndpointError: A model cannot be asked.
            OutputError: The journal cannot be written.
        """
        kept = Seen()
        for decision in journal.decisions:
            if decision.fate == "kept" and decision.conversation is not None:
                kept.add(decision.id, decision.conversation)
        slots = self.writer.endpoint.concurrency
        size, largest = (_BATCH_CHUNK, _BATCH_CHUNK) if self.writer.is_batch else (slots, _CHUNK_PER_SLOT * slots)
        for attempt in range(1, self.recipe.attempts + 1):
            # A row that is kept needs no attempt; one that was given up on may lack an earlier attempt than its last.
            settled = {each.id for each in journal.decisions if each.fate == "kept" or each.attempt == attempt}
            due = [cell for cell in self.plan.cells if cell.id not in settled]
            while due:
                some, due = due[:size], due[size:]
                size = min(2 * size, largest)
                for decision in self._decisions(some, attempt, kept):
                    journal.add(decision)
                    if progress is not None:
                        progress(decision)
        return self.accounts(journal)

    def accounts(self, journal: Journal) -> Accounts:
        """Count what became of the planned rows so far."""
        return account(self.plan.cells, journal.decisions, attempts=self.recipe.attempts)

    def _decisions(self, cells: Sequence[Cell], attempt: int, kept: Seen) -> Iterator[Decision]:
        """Yield what becomes of some rows: first those that need no judge, then the others."""
        rows: list[tuple[Cell, Conversation]] = []
        requests = (self.row_prompt.request(cell, attempt) for cell in cells)
        for cell, reply in zip(cells, self.writer.ask(requests, _is_row), strict=True):
            found = read_row(reply)
            problem = found if isinstance(found, Problem) else self._problem(found, cell)
            if isinstance(found, Conversation) and problem is None:
                rows.append((cell, found))
            elif problem is not None:
                yield _failed(cell, attempt, problem, None if isinstance(found, Problem) else found)
        questions = (self.check_prompt.request(talk) for _, talk in rows)
        for (cell, talk), reply in zip(rows, self.checker.ask(questions, self._is_judgement), strict=True):
            decision = self._judged(cell, attempt, talk, reply, kept)
            if decision.fate == "kept":
                kept.add(cell.id, talk)
            yield decision

    def _problem(self, talk: Conversation, cell: Cell) -> Problem | None:
        """Return what is wrong with a row before anybody is asked to judge it."""
        repeated = self.avoided.find_in(talk)
        return Problem("avoided", str(repeated)) if repeated is not None else row_problem(talk, cell, self.recipe)

    def _judged(self, cell: Cell, attempt: int, talk: Conversation, reply: Reply, kept: Seen) -> Decision:
        found = read_judgement(reply, self.taxonomy)
        if isinstance(found, Problem):
            return _failed(cell, attempt, found, talk)
        said = {
            "verdict": found.verdict.outcome,
            "labels": list(found.labels),
            "harmful_detail": found.is_harmful,
            "language": found.language,
        }
        problem = judgement_problem(found, cell)
        repeated = kept.find(talk) if problem is None else None
        if repeated is not None:
            problem = Problem("duplicate", str(repeated))
        if problem is not None:
            return _failed(cell, attempt, problem, talk, said)
        return Decision(cell.id, attempt, "kept", conversation=talk, judged=said)

    def _is_judgement(self, answer: Answer) -> bool:
        return isinstance(read_judgement(answer, self.taxonomy), Judgement)


def _is_row(answer: Answer) -> bool:
    return isinstance(read_row(answer), Conversation)


def _failed(
    cell: Cell, attempt: int, problem: Problem, talk: Conversation | None, said: Mapping[str, Any] | None = None
) -> Decision:
    fate: Fate = "given_up" if problem.is_given_up else "rejected"
    return Decision(cell.id, attempt, fate, problem.reason, problem.detail, talk, said)
