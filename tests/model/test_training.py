"""Hold training to its loss, its choice of epoch, and to ending up the same whether or not it was stopped."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

from demur.errors import TrainingError
from demur.model import training
from demur.model.encoders import Encoder
from demur.model.loss import Loss
from demur.model.network import Logits, RefusalNetwork, add_low_rank
from demur.model.targets import Example
from demur.model.training import Step, TrainingSettings, Validation, fit
from demur.model.validation import gate_f1, held_out_logits, kind_accuracy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from torch import Tensor

    from demur.taxonomy import Taxonomy

SETTINGS = TrainingSettings(
    kind_smoothing=0.0,
    epochs=3,
    batch_size=8,
    learning_rate=5e-3,
    rank=2,
    patience=3,
    checkpoint_steps=2,
    seed=11,
    is_bf16=False,
)
N_KINDS = 16


def one_hot(index: int) -> tuple[float, ...]:
    """Put all on one kind."""
    return tuple(float(i == index) for i in range(N_KINDS))


def example(
    *, refusal: float = 1.0, partial: float = math.nan, kinds: tuple[float, ...] | None = None, weight: float = 1.0
) -> Example:
    """Build an example whose text does not matter."""
    return Example("a", "a", refusal, partial, kinds, weight)


def refuses(subject: str, kind: int) -> Example:
    """Build a refusal of a kind."""
    reply = f"<|assistant|>sorry i cannot help with {subject}"
    return Example(f"<|user|>tell me of {subject}{reply}", reply, 1.0, 0.0, one_hot(kind))


def complies(subject: str) -> Example:
    """Build a reply that complies."""
    reply = f"<|assistant|>sure here is a good {subject}"
    return Example(f"<|user|>give me a {subject}{reply}", reply, 0.0)


SUBJECTS = ("bread", "lock", "story", "song", "image", "news", "law", "feelings", "today", "image of a lock", "ai")
TRAINING = [made for i, subject in enumerate(SUBJECTS[:10]) for made in (refuses(subject, i % 3), complies(subject))]
HELD_OUT = [refuses("ai", 0), complies("ai")]


@pytest.fixture
def fresh(tiny_encoder: Path) -> Callable[[], RefusalNetwork]:
    """Return what builds the same adapted network each time."""

    def build() -> RefusalNetwork:
        torch.manual_seed(5)
        network = RefusalNetwork(Encoder.find(str(tiny_encoder)).network(), N_KINDS)
        add_low_rank(network.encoder, SETTINGS.rank)
        return network

    return build


@pytest.fixture
def trained(tiny_encoder: Path, taxonomy: Taxonomy, tmp_path: Path) -> _Trainer:
    """Return what fits a network to the rows above."""
    return _Trainer(Encoder.find(str(tiny_encoder)), taxonomy, tmp_path / "checkpoint.pt")


class _Trainer:
    def __init__(self, encoder: Encoder, taxonomy: Taxonomy, checkpoint: Path) -> None:
        self._taxonomy, self._tokenizer, self.checkpoint = taxonomy, encoder.tokenizer(), checkpoint
        self.ended = b""

    def __call__(
        self,
        network: RefusalNetwork,
        *,
        settings: TrainingSettings = SETTINGS,
        training: Sequence[Example] = TRAINING,
        held_out: Sequence[Example] = HELD_OUT,
        on_step: Callable[[Step], None] = lambda _: None,
        on_epoch: Callable[[Validation], None] = lambda _: None,
    ) -> list[Validation]:
        history = fit(
            network, training, held_out, taxonomy=self._taxonomy, tokenizer=self._tokenizer, settings=settings,
            checkpoint=self.checkpoint, on_step=on_step, on_epoch=on_epoch,
        )  # fmt: skip
        # What is made of the network would stand here; with it, the training is over.
        self.ended = self.checkpoint.read_bytes()
        self.checkpoint.unlink()
        return history


class Stopped(Exception):  # noqa: N818  # a signal, not an error
    """Stand for whatever kills a run."""


def stop_after(n_steps: int) -> Callable[[Step], None]:
    """Return a callback that ends the run after so many steps."""

    def on_step(step: Step) -> None:
        if step.done == n_steps:
            raise Stopped

    return on_step


def free_tensors(network: RefusalNetwork) -> dict[str, Tensor]:
    """Copy what training changes."""
    return {name: p.detach().clone() for name, p in network.named_parameters() if p.requires_grad}


# The loss ------------------------------------------------------------------------------------------------------------


def even_logits(n_rows: int) -> Logits:
    """Return logits that know nothing: all zero."""
    return Logits(torch.zeros(n_rows, 2), torch.zeros(n_rows), torch.zeros(n_rows, N_KINDS))


def loss_of(logits: Logits, batch: Sequence[Example], taxonomy: Taxonomy, *, is_bare: bool = False) -> float:
    """Return the loss of a batch, all of its rows bare or none."""
    return float(Loss(taxonomy, SETTINGS)(logits, batch, is_bare=np.full(len(batch), is_bare)))


def test_the_loss_of_knowing_nothing_follows_from_the_counts(taxonomy: Taxonomy) -> None:
    """Gate ln 2, partial .5 · ln 2, kind ln 16, its group, of 7 in 16, .5 · ln(16 / 7)."""
    row = example(partial=0.0, kinds=one_hot(0))
    expected = math.log(2) + 0.5 * math.log(2) + math.log(16) + 0.5 * math.log(16 / 7)
    assert loss_of(even_logits(1), [row], taxonomy) == pytest.approx(expected, rel=1e-6)


def test_the_other_group_has_nine_members(taxonomy: Taxonomy) -> None:
    """The last kind is one of the 9 in 16 that cannot: ln 2 + ln 16 + .5 · ln(16 / 9), with partial unknown."""
    expected = math.log(2) + math.log(16) + 0.5 * math.log(16 / 9)
    assert loss_of(even_logits(1), [example(kinds=one_hot(15))], taxonomy) == pytest.approx(expected, rel=1e-6)


def test_a_slip_inside_of_a_group_costs_less_than_one_across(taxonomy: Taxonomy) -> None:
    """Sure of kind 1 where 0 is right (the same group), or of kind 15 (the other): the kind's own loss is the same."""
    row = example(kinds=one_hot(0))
    inside, across = even_logits(1), even_logits(1)
    inside.kinds[0, 1] = across.kinds[0, 15] = 5.0
    assert loss_of(inside, [row], taxonomy) < loss_of(across, [row], taxonomy) - 1.0


def test_a_target_over_both_groups_is_shared_between_them(taxonomy: Taxonomy) -> None:
    """.8 on kind 0, .2 on kind 15: ln 16 for the kinds; for the groups .5 · (.8 · ln(16/7) + .2 · ln(16/9))."""
    target = (0.8, *[0.0] * 14, 0.2)
    groups = 0.8 * math.log(16 / 7) + 0.2 * math.log(16 / 9)
    expected = math.log(2) + math.log(16) + 0.5 * groups
    assert loss_of(even_logits(1), [example(kinds=target)], taxonomy) == pytest.approx(expected, rel=1e-6)


def test_kinds_of_what_hardly_refuses_count_little_even_alone(taxonomy: Taxonomy) -> None:
    """A quarter of the kind's and the group's loss where the only row with a kind refuses with P = 1/4."""
    of_kind = math.log(16) + 0.5 * math.log(16 / 9)
    row = replace(example(kinds=one_hot(15)), kind_weight=0.25)
    assert loss_of(even_logits(1), [row], taxonomy) == pytest.approx(math.log(2) + 0.25 * of_kind, rel=1e-6)
    rare = replace(row, kind_weight=4.0)
    assert loss_of(even_logits(1), [rare], taxonomy) == pytest.approx(math.log(2) + of_kind, rel=1e-6)


def test_smoothing_spreads_a_share_of_the_target_over_all_kinds(taxonomy: Taxonomy) -> None:
    """Over even logits it changes the group's part alone: of 7 in 16, target .92 · 1 + .08 · 7 / 16."""
    smooth = Loss(taxonomy, replace(SETTINGS, kind_smoothing=0.08))
    first = 0.92 + 0.08 * 7 / 16
    groups = first * math.log(16 / 7) + (1 - first) * math.log(16 / 9)
    found = float(smooth(even_logits(1), [example(kinds=one_hot(0))], is_bare=np.array([False])))
    assert found == pytest.approx(math.log(2) + math.log(16) + 0.5 * groups, rel=1e-6)


def test_rows_count_by_their_weight(taxonomy: Taxonomy) -> None:
    """Log-odds 2 for both; the refusal weighs 1, the other .3: (ln(1 + e⁻²) + .3 · ln(1 + e²)) / 1.3."""
    logits = even_logits(2)
    logits.gate[:, 1] = 2.0
    batch = [example(), example(refusal=0.0, weight=0.3)]
    expected = (math.log1p(math.exp(-2)) + 0.3 * math.log1p(math.exp(2))) / 1.3
    assert loss_of(logits, batch, taxonomy) == pytest.approx(expected, rel=1e-6)


def test_a_bare_reply_teaches_no_kind(taxonomy: Taxonomy) -> None:
    """Ln 2 for the gate is all: without the request, the kind would have to be guessed."""
    row = example(kinds=one_hot(0))
    assert loss_of(even_logits(1), [row], taxonomy, is_bare=True) == pytest.approx(math.log(2), rel=1e-6)


# Settings ------------------------------------------------------------------------------------------------------------


def test_settings_are_changed_field_by_field() -> None:
    """What is not given stays."""
    assert SETTINGS.changed(seed=3, rank=0) == replace(SETTINGS, seed=3, rank=0)


@pytest.mark.parametrize(
    ("name", "value"), [("seed", -1), ("learning_rate", 0.0), ("epochs", 0), ("max_tokens", 10**6), ("sead", 1)]
)
def test_settings_that_cannot_be_meant_are_refused_by_name(name: str, value: float) -> None:
    """As in a recipe; numpy would say of the first that it expects a non-negative integer."""
    with pytest.raises(TrainingError, match=rf"training settings: {name}: (met {value};|unknown field)"):
        SETTINGS.changed(**{name: value})


# Measuring -----------------------------------------------------------------------------------------------------------


def test_f1_counts_hits_against_errors_of_both_sides() -> None:
    """Flagged: rows 1, 2, 3; refusals: rows 1, 2, 4. 2 hits, 1 alarm, 1 miss: 2 · 2 / (2 · 2 + 2) = 2/3."""
    rows = [example(refusal=refusal) for refusal in (1.0, 0.95, 0.05, 1.0)]
    assert gate_f1(np.array([1.0, 2.0, 3.0, -1.0]), rows) == pytest.approx(2 / 3)


def test_figures_of_nothing_are_nan() -> None:
    """No refusal and no alarm; no known kind; and the score of both."""
    rows = [example(refusal=0.0)]
    assert math.isnan(gate_f1(np.array([-1.0]), rows))
    assert math.isnan(kind_accuracy(np.zeros((1, N_KINDS)), rows))
    assert math.isnan(Validation(1, 0.5, math.nan, math.nan).score)


def test_the_score_is_the_mean_of_what_is_known() -> None:
    """(.8 + .4) / 2 = .6; .8 alone is .8."""
    assert Validation(1, 0.5, 0.8, 0.4).score == pytest.approx(0.6)
    assert Validation(1, 0.5, 0.8, math.nan).score == 0.8


def test_kind_accuracy_looks_at_rows_with_a_kind_alone() -> None:
    """Of three rows, two have a kind, and one of those is named right: 1 / 2."""
    rows = [example(kinds=one_hot(2)), example(), example(kinds=one_hot(3))]
    logits = np.zeros((3, N_KINDS))
    logits[:, 2] = 1.0
    assert kind_accuracy(logits, rows) == 0.5


def test_held_out_rows_are_judged_in_order(fresh: Callable[[], RefusalNetwork], tiny_encoder: Path) -> None:
    """Rows of mixed length are batched by length, and put back."""
    network, tokenizer = fresh(), Encoder.find(str(tiny_encoder)).tokenizer()
    gate, partial, kinds = held_out_logits(network, TRAINING, tokenizer=tokenizer)
    for i, row in enumerate(TRAINING):
        (alone,), (part,), (kind,) = held_out_logits(network, [row], tokenizer=tokenizer)
        np.testing.assert_allclose([gate[i], partial[i]], [alone, part], atol=1e-5)
        np.testing.assert_allclose(kinds[i], kind, atol=1e-5)


# Fitting -------------------------------------------------------------------------------------------------------------


def test_the_loss_goes_down(fresh: Callable[[], RefusalNetwork], trained: _Trainer) -> None:
    """Over eight epochs of twenty rows, by more than a third."""
    history = trained(fresh(), settings=replace(SETTINGS, epochs=8, patience=8))
    assert [validation.epoch for validation in history] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert history[-1].training_loss < history[0].training_loss * 2 / 3


def test_steps_are_told(fresh: Callable[[], RefusalNetwork], trained: _Trainer) -> None:
    """20 rows in batches of 8 are 2 steps an epoch, the rest of 4 rows left for another epoch: 6 in all."""
    steps: list[Step] = []
    trained(fresh(), on_step=steps.append)
    assert [(step.done, step.total, step.n_rows) for step in steps] == [(i, 6, 8) for i in range(1, 7)]


@pytest.mark.parametrize("n_steps", [1, 3, 4, 5])
def test_a_stopped_run_ends_up_where_an_unstopped_one_does(
    fresh: Callable[[], RefusalNetwork], trained: _Trainer, n_steps: int
) -> None:
    """Bit for bit, with dropout: stopped before the first checkpoint, between two, and right before one is written."""
    whole = fresh()
    history = trained(whole)
    stopped = fresh()
    with pytest.raises(Stopped):
        trained(stopped, on_step=stop_after(n_steps))
    assert trained.checkpoint.exists() == (n_steps > 2)
    again = fresh()
    assert trained(again) == history
    assert free_tensors(again).keys() == free_tensors(whole).keys()
    assert all(torch.equal(tensor, free_tensors(whole)[name]) for name, tensor in free_tensors(again).items())


def test_a_run_stopped_after_its_last_step_is_over_without_another(
    fresh: Callable[[], RefusalNetwork], trained: _Trainer
) -> None:
    """Calibrating takes a while, too: stopped there, nothing is trained again."""
    whole = fresh()
    history = trained(whole)
    trained.checkpoint.write_bytes(trained.ended)
    steps: list[Step] = []
    again = fresh()
    assert trained(again, on_step=steps.append) == history
    assert not steps
    assert all(torch.equal(tensor, free_tensors(whole)[name]) for name, tensor in free_tensors(again).items())


def test_a_run_stopped_twice_ends_up_there_too(fresh: Callable[[], RefusalNetwork], trained: _Trainer) -> None:
    """Checkpoints of continued runs are as good as those of fresh ones."""
    whole = fresh()
    trained(whole)
    for n_steps in (3, 5):
        with pytest.raises(Stopped):
            trained(fresh(), on_step=stop_after(n_steps))
    again = fresh()
    trained(again)
    assert all(torch.equal(tensor, free_tensors(whole)[name]) for name, tensor in free_tensors(again).items())


def test_the_best_epoch_is_kept(fresh: Callable[[], RefusalNetwork], trained: _Trainer) -> None:
    """Of epochs with the same score, the first; the network ends with its tensors."""
    network = fresh()
    met: list[tuple[float, dict[str, Tensor]]] = []
    trained(
        network,
        settings=replace(SETTINGS, epochs=6, patience=6),
        on_epoch=lambda validation: met.append((validation.score, free_tensors(network))),
    )
    best = max(range(len(met)), key=lambda i: met[i][0])
    assert all(torch.equal(tensor, met[best][1][name]) for name, tensor in free_tensors(network).items())


@pytest.mark.parametrize(("patience", "n_epochs"), [(1, 2), (2, 3), (9, 5)])
def test_training_stops_when_patience_runs_out(
    fresh: Callable[[], RefusalNetwork], trained: _Trainer, patience: int, n_epochs: int
) -> None:
    """At rate 0 no epoch is better than the first: one epoch and `patience` more, of 5 at most."""
    settings = replace(SETTINGS, epochs=5, learning_rate=0.0, patience=patience)
    assert len(trained(fresh(), settings=settings)) == n_epochs


def test_epochs_that_cannot_be_measured_are_all_run_and_the_last_is_kept(
    fresh: Callable[[], RefusalNetwork], trained: _Trainer
) -> None:
    """Held-out rows that neither refuse nor are flagged have no F1: nothing says that an earlier epoch was better."""
    network = fresh()
    with torch.no_grad():
        network.gate.classifier.bias.copy_(torch.tensor([50.0, -50.0]))
    met: list[dict[str, Tensor]] = []
    history = trained(
        network,
        settings=replace(SETTINGS, patience=1, learning_rate=1e-4),
        held_out=[complies("ai")],
        on_epoch=lambda _: met.append(free_tensors(network)),
    )
    assert [math.isnan(validation.score) for validation in history] == [True, True, True]
    assert all(torch.equal(tensor, met[-1][name]) for name, tensor in free_tensors(network).items())


@pytest.mark.parametrize("change", ["settings", "rows", "labels", "held out", "encoder"])
def test_a_checkpoint_of_another_run_is_refused(
    fresh: Callable[[], RefusalNetwork], trained: _Trainer, change: str
) -> None:
    """Even where as many rows are left: a corrected label must not be trained on half of the way only."""
    with pytest.raises(Stopped):
        trained(fresh(), on_step=stop_after(3))
    network = fresh()
    if change == "encoder":
        with torch.no_grad():
            network.encoder.embeddings.word_embeddings.weight[0, 0] += 1
    with pytest.raises(TrainingError, match="is the checkpoint of another run"):
        trained(
            network,
            settings=replace(SETTINGS, learning_rate=1e-3) if change == "settings" else SETTINGS,
            training={
                "rows": [*TRAINING[:-1], complies("story of a lock")],
                "labels": [replace(TRAINING[0], partial=1.0), *TRAINING[1:]],
            }.get(change, TRAINING),
            held_out=HELD_OUT[::-1] if change == "held out" else HELD_OUT,
        )


@pytest.mark.parametrize("damage", [b"", b"no checkpoint", None], ids=["empty", "foreign", "cut off"])
def test_a_damaged_checkpoint_is_said_to_be_so(
    fresh: Callable[[], RefusalNetwork], trained: _Trainer, damage: bytes | None
) -> None:
    """Empty, no checkpoint at all, or only its first half."""
    with pytest.raises(Stopped):
        trained(fresh(), on_step=stop_after(3))
    content = trained.checkpoint.read_bytes()
    trained.checkpoint.write_bytes(content[: len(content) // 2] if damage is None else damage)
    with pytest.raises(TrainingError, match=r"is damaged .* remove it to train from the beginning"):
        trained(fresh())


def test_fewer_rows_than_a_batch_are_too_few(fresh: Callable[[], RefusalNetwork], trained: _Trainer) -> None:
    """7 rows, batches of 8."""
    with pytest.raises(TrainingError, match="7 training rows are fewer than one batch of 8"):
        trained(fresh(), training=TRAINING[:7])


def test_nothing_held_out_is_too_little(fresh: Callable[[], RefusalNetwork], trained: _Trainer) -> None:
    """The epoch could not be chosen, nor anything calibrated."""
    with pytest.raises(TrainingError, match="no row is held out"):
        trained(fresh(), held_out=[])


@pytest.mark.parametrize("has_bf16", [True, False])
def test_reduced_precision_trains_too_where_the_machine_has_it(
    fresh: Callable[[], RefusalNetwork], trained: _Trainer, monkeypatch: pytest.MonkeyPatch, *, has_bf16: bool
) -> None:
    """In bfloat16 the loss goes down as well, and the tensors stay in 32 bits; without, products do, too."""
    monkeypatch.setattr(training, "has_bf16", lambda: has_bf16)
    network = fresh()
    met: set[torch.dtype] = set()
    layer = network.encoder.get_submodule("encoder.layer.0.intermediate.dense")
    layer.register_forward_hook(lambda _module, _given, returned: met.add(returned.dtype))
    history = trained(network, settings=replace(SETTINGS, is_bf16=True, epochs=5, patience=5))
    assert history[-1].training_loss < history[0].training_loss
    assert {tensor.dtype for tensor in free_tensors(network).values()} == {torch.float32}
    # Held-out rows are judged in fp32, whatever the training runs in.
    assert met == ({torch.bfloat16, torch.float32} if has_bf16 else {torch.float32})


def diverge(network: RefusalNetwork, *, at: int) -> Callable[[Step], None]:
    """Return a callback that breaks a parameter after so many steps, as an overflow does."""

    def on_step(step: Step) -> None:
        if step.done == at:
            with torch.no_grad():
                network.partial.bias.fill_(math.nan)

    return on_step


@pytest.mark.parametrize(
    ("at", "said"),
    [(2, r"held-out rows with logits that are no numbers at step 2 of 6"), (3, r"loss nan at step 4 of 6")],
    ids=["before an epoch ends", "within an epoch"],
)
def test_a_training_that_diverges_says_so_and_keeps_the_checkpoint_before(
    fresh: Callable[[], RefusalNetwork], trained: _Trainer, at: int, said: str
) -> None:
    """Checkpoints are due after steps 2, 4 and 6, epochs end there: what is no number is in none of them."""
    whole = fresh()
    trained(whole)
    network = fresh()
    with pytest.raises(TrainingError, match=f"training diverged: {said}; give a learning rate below 0.005"):
        trained(network, on_step=diverge(network, at=at))
    assert trained.checkpoint.exists() == (at > 2)
    again = fresh()
    trained(again)
    assert all(torch.equal(tensor, free_tensors(whole)[name]) for name, tensor in free_tensors(again).items())


def test_a_learning_rate_beyond_reason_ends_in_a_clear_error(
    fresh: Callable[[], RefusalNetwork], trained: _Trainer
) -> None:
    """Parameters of 10³⁰ make products that 32 bits do not hold."""
    with pytest.raises(TrainingError, match=r"diverged: .* at step \d+ of 6; give a learning rate below 1e\+30"):
        trained(fresh(), settings=replace(SETTINGS, learning_rate=1e30))
