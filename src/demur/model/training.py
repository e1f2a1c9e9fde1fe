"""Fit adapters and heads: gate, partial and kinds together, with checkpoints that a killed run goes on from."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import torch
from torch import Tensor, nn

from demur.data.rendering import windowed
from demur.errors import TrainingError
from demur.model.checkpoints import read_checkpoint, run_identity, write_checkpoint
from demur.model.loss import Loss
from demur.model.runtime import padded
from demur.model.runtime.machine import has_bf16
from demur.model.settings import TrainingSettings
from demur.model.validation import Validation, gate_f1, held_out_logits, kind_accuracy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tokenizers import Tokenizer

    from demur.model.network import RefusalNetwork
    from demur.model.targets import Example
    from demur.taxonomy import Taxonomy

__all__ = ["Step", "TrainingSettings", "Validation", "fit", "held_out_logits", "is_in_bf16", "require_enough"]

# Rows that are sorted by length together: long enough to save padding, short enough to keep batches mixed.
_POOL_BATCHES = 32


@dataclass(frozen=True, slots=True)
class Step:
    """Tell a progress display how far training is."""

    done: int
    total: int
    n_rows: int
    loss: float


@dataclass(slots=True)
class _State:
    """Hold what a checkpoint must bring back."""

    step: int = 0
    losses: list[float] = field(default_factory=list)
    history: list[dict[str, Any]] = field(default_factory=list)
    best: dict[str, Tensor] = field(default_factory=dict)
    best_score: float = -1.0
    best_epoch: int = 0


def fit(  # noqa: PLR0913  # the two callbacks are mostly left out
    network: RefusalNetwork,
    training: Sequence[Example],
    held_out: Sequence[Example],
    *,
    taxonomy: Taxonomy,
    tokenizer: Tokenizer,
    settings: TrainingSettings,
    checkpoint: Path,
    started_from: str | None = None,
    on_step: Callable[[Step], None] = lambda _: None,
    on_epoch: Callable[[Validation], None] = lambda _: None,
) -> list[Validation]:
    """Train the network's free parameters in place and leave it with the best epoch's.

    A training that goes on from weights has the last epoch's instead, and stops no earlier: on kinds that the weights
    know they are as good as they get before the first step, and held-out rows, which may have none of a new kind, would
    choose the epoch that learnt it least.

    Args:
        network: Wrapped with `add_low_rank`, or with the layers to be trained set free.
        training: At least one batch of examples.
        held_out: Chooses the epoch, or shows how it goes.
        taxonomy: Gives the groups for the group loss.
        tokenizer: The encoder's own.
        settings: How to train.
        checkpoint: A file to continue from if it exists, and to write to. It is left in place: with it, what the caller
            does with the network can be stopped and done again without a step.
        started_from: Digest of the weights that the network holds at first; None where its heads are fresh.
        on_step: Called after each step.
        on_epoch: Called after each epoch.

    Raises:
        TrainingError: There are fewer rows than one batch, or none held out, or the checkpoint is not of this run; or
            the training diverges, and the checkpoint before it is kept.
    """
    require_enough(len(training), len(held_out), settings)
    run = _Run(
        network, training, held_out, taxonomy=taxonomy, tokenizer=tokenizer, settings=settings,
        started_from=started_from,
    )  # fmt: skip
    run.restore(checkpoint)
    while not run.is_finished:
        run.advance()
        on_step(run.progress)
        if run.is_epoch_end:
            on_epoch(run.validate())
        if run.is_epoch_end or run.state.step % settings.checkpoint_steps == 0:
            run.save(checkpoint)
    network.load_state_dict(run.state.best, strict=False)
    return [Validation(**entry) for entry in run.state.history]


def require_enough(n_training: int, n_held_out: int, settings: TrainingSettings) -> None:
    """Refuse too few rows.

    Raises:
        TrainingError: There are fewer rows to train on than one batch, or none is held out.
    """
    if n_training < settings.batch_size:
        message = f"{n_training} training rows are fewer than one batch of {settings.batch_size}; give more rows"
        raise TrainingError(message)
    if not n_held_out:
        message = (
            "no row is held out to choose the epoch by; give more real replies with a clear `verdict`: synthetic, "
            "weak and hard-drawn rows, and those with `refusal` alone, never are"
        )
        raise TrainingError(message)


def is_in_bf16(settings: TrainingSettings) -> bool:
    """Tell whether products run in bf16: only where it is quick, for a step takes 16 to 24 times as long without."""
    return settings.is_bf16 and has_bf16()


class _Run:
    """Walk through the steps of one training run."""

    def __init__(
        self,
        network: RefusalNetwork,
        training: Sequence[Example],
        held_out: Sequence[Example],
        *,
        taxonomy: Taxonomy,
        tokenizer: Tokenizer,
        settings: TrainingSettings,
        started_from: str | None,
    ) -> None:
        self.network, self.training, self.held_out = network, training, held_out
        self.tokenizer, self.settings, self.state = tokenizer, settings, _State()
        self._tokens, self._bare = (
            windowed(texts, tokenizer=tokenizer, max_tokens=settings.max_tokens)
            for texts in ([row.text for row in training], [row.bare_text for row in training])
        )
        straight, curly = tokenizer.token_to_id("'"), tokenizer.token_to_id("’")
        self._apostrophes = {straight: curly, curly: straight} if straight is not None and curly is not None else {}
        self._loss = Loss(taxonomy, settings)
        self._keeps_last = started_from is not None
        self.steps_per_epoch = len(training) // settings.batch_size
        free = [parameter for parameter in network.parameters() if parameter.requires_grad]
        self._optimizer = torch.optim.AdamW(free, lr=settings.learning_rate, weight_decay=settings.weight_decay)
        self._free = free
        self._identity = run_identity(
            network, training, held_out, settings, taxonomy=taxonomy, started_from=started_from
        )
        self._plan: tuple[int, list[list[int]]] = (-1, [])
        self._device = next(network.parameters()).device
        self._is_bf16 = is_in_bf16(settings)
        torch.manual_seed(settings.seed)

    @property
    def total_steps(self) -> int:
        return self.steps_per_epoch * self.settings.epochs

    @property
    def is_epoch_end(self) -> bool:
        return self.state.step > 0 and self.state.step % self.steps_per_epoch == 0

    @property
    def is_finished(self) -> bool:
        has_stalled = len(self.state.history) - self.state.best_epoch >= self.settings.patience
        return self.state.step >= self.total_steps or (self.is_epoch_end and has_stalled)

    @property
    def progress(self) -> Step:
        return Step(self.state.step, self.total_steps, self.settings.batch_size, self.state.losses[-1])

    def advance(self) -> None:
        """Take one step."""
        epoch, position = divmod(self.state.step, self.steps_per_epoch)
        batch = self._batches(epoch)[position]
        rng = np.random.default_rng([self.settings.seed, epoch, position])
        is_bare = rng.random(len(batch)) < self.settings.context_dropout
        tokens = [self._bare[i] if bare else self._tokens[i] for i, bare in zip(batch, is_bare, strict=True)]
        is_swapped = rng.random(len(batch)) < self.settings.apostrophe_swaps
        tokens = [self._swapped(ids) if swapped else ids for ids, swapped in zip(tokens, is_swapped, strict=True)]
        for group in self._optimizer.param_groups:
            group["lr"] = self.settings.learning_rate * self._schedule()
        self.network.train()
        ids, mask = (torch.from_numpy(array).to(self._device) for array in padded(tokens))
        with torch.autocast(self._device.type, torch.bfloat16, enabled=self._is_bf16):
            logits = self.network(ids, mask)
        loss = self._loss(logits, [self.training[i] for i in batch], is_bare=is_bare)
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        norm = nn.utils.clip_grad_norm_(self._free, 1.0)
        self.state.step += 1
        self._require_finite(loss=float(loss.detach()), gradient=float(norm))
        self._optimizer.step()
        self._optimizer.zero_grad()
        self.state.losses.append(float(loss.detach()))

    def _require_finite(self, **met: float) -> None:
        """Stop before what is no number gets into the parameters, or into a checkpoint."""
        for name, value in met.items():
            if not math.isfinite(value):
                self._stop_diverged(f"{name} {value}")

    def _stop_diverged(self, what: str) -> NoReturn:
        message = (
            f"training diverged: {what} at step {self.state.step} of {self.total_steps}; give a learning rate below "
            f"{self.settings.learning_rate:g}, and another folder or one without this run's checkpoint"
        )
        raise TrainingError(message)

    def _swapped(self, ids: list[int]) -> list[int]:
        return [self._apostrophes.get(token, token) for token in ids]

    def _schedule(self) -> float:
        """Return the factor of the learning rate: linear up over the warm-up, linear down to 0 after it."""
        warmup = max(1, round(self.settings.warmup * self.total_steps))
        done = self.state.step
        return (done + 1) / warmup if done < warmup else (self.total_steps - done) / max(1, self.total_steps - warmup)

    def _batches(self, epoch: int) -> list[list[int]]:
        """Plan an epoch: shuffled, then sorted by length within pools, then the batches shuffled."""
        if self._plan[0] != epoch:
            rng = np.random.default_rng([self.settings.seed, epoch])
            order, size = rng.permutation(len(self.training)), self.settings.batch_size
            batches: list[list[int]] = []
            for start in range(0, len(order), size * _POOL_BATCHES):
                pool = sorted(order[start : start + size * _POOL_BATCHES].tolist(), key=lambda i: len(self._tokens[i]))
                batches += [pool[i : i + size] for i in range(0, len(pool) - size + 1, size)]
            self._plan = (epoch, [batches[i] for i in rng.permutation(len(batches))])
        return self._plan[1]

    def validate(self) -> Validation:
        """Measure the epoch, and keep its parameters if it is the best so far."""
        logits = held_out_logits(self.network, self.held_out, tokenizer=self.tokenizer)
        if not all(np.isfinite(each).all() for each in logits):
            self._stop_diverged("held-out rows with logits that are no numbers")
        gate, _, kinds = logits
        losses = self.state.losses[-self.steps_per_epoch :]
        epoch = self.state.step // self.steps_per_epoch
        measured = gate_f1(gate, self.held_out), kind_accuracy(kinds, self.held_out)
        found = Validation(epoch, float(np.mean(losses)), *measured)
        self.state.history.append(asdict(found))
        # Where nothing could be measured (nan), no epoch is worse than the one before it.
        if self._keeps_last or not found.score <= self.state.best_score:
            self.state.best_score, self.state.best_epoch = found.score, epoch
            self.state.best = {name: parameter.clone() for name, parameter in self._trained().items()}
        return found

    def _trained(self) -> dict[str, Tensor]:
        return {name: p.detach() for name, p in self.network.named_parameters() if p.requires_grad}

    def save(self, path: Path) -> None:
        """Write a checkpoint."""
        content = {
            "parameters": self._trained(),
            "optimizer": self._optimizer.state_dict(),
            "random": torch.get_rng_state(),
            "random_cuda": torch.cuda.get_rng_state_all(),
            "state": asdict(self.state),
        }
        write_checkpoint(path, self._identity, content)

    def restore(self, path: Path) -> None:
        """Go on from a checkpoint if there is one."""
        if not path.is_file():
            return
        content = read_checkpoint(path, self._identity)
        self.network.load_state_dict(content["parameters"], strict=False)
        self._optimizer.load_state_dict(content["optimizer"])
        torch.set_rng_state(content["random"])
        torch.cuda.set_rng_state_all(content["random_cuda"])
        self.state = replace(_State(), **content["state"])
