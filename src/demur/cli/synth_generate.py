"""`demur synth generate`: have a language model write training rows, and keep those that pass every check."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from demur.cli.auditing import check_one_of, say
from demur.cli.judging import (
    BaseUrl,
    Batch,
    CacheFile,
    Concurrency,
    KeyVariable,
    MaxCost,
    Parameters,
    PollSeconds,
    PriceFile,
    PricePair,
    Retries,
    TimeoutSeconds,
    cost_line,
    parse_parameters,
)
from demur.cli.options import TaxonomyFile
from demur.cli.synthesis import (
    Role,
    plan_lines,
    print_results,
    read_avoided,
    show_decisions,
    size_lines,
    synthesis_bar,
)

if TYPE_CHECKING:
    from demur.synthesis.generation import Generation
    from demur.synthesis.recipe import SynthesisRecipe

__all__ = ["generate"]


def generate(
    recipe: Annotated[str, typer.Argument(help="YAML file, or the name of a shipped recipe: small, balanced.")],
    out: Annotated[
        Path | None, typer.Option(help="File for the rows (.jsonl); rejects, report and journal stand beside it.")
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", help="Model that writes, as the server has it; the recipe's by default.")
    ] = None,
    base_url: BaseUrl = "https://api.openai.com/v1",
    key_variable: KeyVariable = None,
    judge_model: Annotated[
        str | None, typer.Option("--judge-model", help="Model that judges what was written; the writer by default.")
    ] = None,
    judge_base_url: Annotated[
        str | None, typer.Option("--judge-base-url", help="Where the judge's API begins; the writer's by default.")
    ] = None,
    judge_key_variable: Annotated[
        str | None, typer.Option("--judge-key-env", help="As --key-env, for the judge.")
    ] = None,
    avoid: Annotated[
        list[Path] | None,
        typer.Option(help="JSONL file or folder with rows not to write again: a corpus, or what is evaluated on."),
    ] = None,
    parameter: Parameters = None,
    judge_parameter: Annotated[
        list[str] | None, typer.Option("--judge-parameter", help="As --parameter, for the judge.")
    ] = None,
    max_cost: MaxCost = None,
    max_answers: Annotated[
        int | None, typer.Option("--max-answers", min=0, help="Stop after paying for so many answers, the judge's too.")
    ] = None,
    prices: PriceFile = None,
    price: PricePair = None,
    judge_price: Annotated[
        str | None, typer.Option("--judge-price", help="As --price, for a judge that is another model.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the plan, its size and what it would cost, and ask nothing.")
    ] = False,
    batch: Batch = False,
    poll: PollSeconds = 30.0,
    concurrency: Concurrency = 8,
    timeout: TimeoutSeconds = 120.0,
    retries: Retries = 6,
    cache: CacheFile = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Go on with a stopped run; given-up attempts at rows not kept are made again."),
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the run that is there.")] = False,
    taxonomy: TaxonomyFile = None,
) -> None:
    """Have a language model write rows to a plan, check each one, and keep those on which another prompt agrees."""
    from demur.llm.budget import Budget
    from demur.synthesis.generation import Generation
    from demur.synthesis.recipe import SynthesisRecipe, recipe_path
    from demur.taxonomy import Taxonomy

    if out is None and not dry_run:
        message = "nowhere to write; give a file, or --dry-run"
        raise typer.BadParameter(message, param_hint="--out")
    check_one_of(resume=resume, overwrite=overwrite)
    console, kinds = Console(stderr=True), Taxonomy.load(taxonomy)
    wanted = SynthesisRecipe.load(recipe, kinds)
    writes = Role("writer", _model(wanted, model), base_url, key_variable, price)
    # A judge somewhere else gets no key that was not meant for it, and has its own price.
    is_elsewhere, is_other = judge_base_url is not None, judge_model is not None or judge_base_url is not None
    judges = Role(
        "judge",
        writes.model if judge_model is None else judge_model,
        base_url if judge_base_url is None else judge_base_url,
        judge_key_variable if is_elsewhere or judge_key_variable is not None else key_variable,
        judge_price if is_other or judge_price is not None else price,
    )
    # What an earlier run was charged counts where this one goes on with it; a dry one forgets nothing.
    is_apart = out is None or (dry_run and not _goes_on(out, resume=resume))
    run = None if is_apart or out is None else str(out.resolve())
    writer, checker = (
        role.client(
            (concurrency, timeout, retries), prices, run,
            cache=cache, budget=Budget(max_cost, max_answers), is_batch=batch, poll_seconds=poll,
            tell=lambda line: say(console, line),
        )
        for role in (writes, judges)
    )  # fmt: skip
    writer.join(checker)
    for role, client, option in (
        (writes, writer, "--price"),
        (judges, checker, "--judge-price" if is_other else "--price"),
    ):
        say(console, f"{role.part}: {role.model} at {client.endpoint.url}; {cost_line(client, option=option)}")
    opened = Generation.of(
        wanted, kinds, recipe_file=recipe_path(recipe), writer=writer, checker=checker,
        parameters=parse_parameters(parameter), judge_parameters=parse_parameters(judge_parameter),
        avoided=read_avoided(avoid, out, console),
    )  # fmt: skip
    if dry_run or out is None:
        print("\n".join((*plan_lines(opened.plan, wanted), *size_lines(opened))))
        return
    _run(opened, out, console, resume=resume, overwrite=overwrite)


def _model(recipe: SynthesisRecipe, given: str | None) -> str:
    if given is not None:
        return given
    if recipe.model is not None:
        return recipe.model
    message = f"recipe {recipe.name!r} names no model; name the one that is to write"
    raise typer.BadParameter(message, param_hint="--model")


def _goes_on(out: Path, *, resume: bool) -> bool:
    """Tell whether there is a run to go on with; else what was charged under its name is no part of this one."""
    from demur.synthesis.journal import Places

    return resume and Places(out).journal.is_file()


def _run(generation: Generation, out: Path, console: Console, *, resume: bool, overwrite: bool) -> None:
    from demur.studies.holding import held
    from demur.synthesis.journal import Journal, Places
    from demur.synthesis.results import write_results

    places, clients = Places(out), (generation.writer, generation.checker)
    # Without a key, nothing is begun.
    for client in clients:
        client.endpoint.key()
    with held(places.rows, places.lock):
        is_new = not _goes_on(out, resume=resume)
        journal = Journal.open(places, generation.manifest, resume=resume, overwrite=overwrite)
        if is_new:
            for client in clients:
                client.begin()
        try:
            with synthesis_bar(console, *clients) as progress:
                attempts = generation.recipe.attempts
                generation.run(journal, show_decisions(progress, generation.accounts(journal), attempts=attempts))
        finally:
            # However the run ended: what counts so far can be read, and the report says what is pending.
            found = write_results(generation, journal, places)
            print_results(found, generation, out)
    if not found.accounts.kept:
        raise typer.Exit(1)
