"""Say how weights are trained."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, Any

from pydantic import Field

from demur.data.rendering import MAX_TOKENS, MIN_TOKENS
from demur.documents import CLOSED, validate
from demur.errors import TrainingError

__all__ = ["TrainingSettings"]

# What is checked where settings are read from a file; in Python, types say it.
_Count = Annotated[int, Field(ge=1, strict=True)]
_Share = Annotated[float, Field(ge=0, le=1, strict=True)]
_Positive = Annotated[float, Field(gt=0, strict=True, allow_inf_nan=False)]
_Factor = Annotated[float, Field(ge=0, strict=True, allow_inf_nan=False)]
_Window = Annotated[int, Field(ge=MIN_TOKENS, le=MAX_TOKENS, strict=True)]
_Natural = Annotated[int, Field(ge=0, strict=True)]
_Flag = Annotated[bool, Field(strict=True)]


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """Set how the network is fitted.

    Attributes:
        epochs: Passes over the training rows at most.
        batch_size: Rows a step.
        learning_rate: Peak rate of AdamW; rises over the first `warmup` share of the steps, then falls linearly to 0.
        warmup: Share of the steps, from 0 to 1.
        weight_decay: AdamW's decoupled decay.
        rank: Rank of the low-rank updates; 0 trains the encoder's layers whole (its embeddings stay frozen).
        low_rank_scale: Factor s of W + s · B A.
        max_tokens: Window of the training texts; shorter than the encoder's own for speed, since few texts are longer.
        window: Window of the weights in use: what chooses the epoch, calibrates, measures and judges. None for that of
            the training texts: in a wider one, long texts are judged worse.
        earlier_tokens: The most that is read, in training and in use, of the turns between system prompt and last
            request, from their end, the ellipsis counted: of longer turns below 8 nothing; None for all that the
            window holds.
        low_rank_dropout: Share of the inputs of the low-rank updates that a step leaves out. Drawing them for
            every layer takes a third of a step on a CPU.
        partial_weight: Weight of the loss of *partial* beside the gate's.
        group_weight: Weight of the loss of the kinds' groups beside that of the kinds.
        kind_smoothing: Share of the target that is spread evenly over all kinds: one reader in twenty names another.
        main_share: Target share of the main kind where a reading names several.
        teacher_share: Share of a labelled row's target that is what teachers think of it, where there are teachers.
        context_dropout: Share of the rows, drawn anew each epoch, whose gate sees the reply alone.
        apostrophe_swaps: Share of the rows, drawn anew each epoch, whose curly apostrophes become straight ones and the
            other way round: BERT's vocabulary keeps the two apart, and writers do not.
        patience: Epochs without a better validation score after which training stops.
        checkpoint_steps: Steps between checkpoints.
        seed: Seed of initial heads, order and dropout.
        head_seed: Seed of the initial heads, and of the adapters' first factors, where not `seed`: trainings that are
            to be averaged begin with the same ones, since what one hidden unit of a head stands for is chance.
        is_bf16: Whether matrix products run in bfloat16 (autocast) where that is quick on the processor, or the GPU.
    """

    __pydantic_config__ = CLOSED

    epochs: _Count = 3
    batch_size: _Count = 16
    learning_rate: _Positive = 5e-4
    warmup: _Share = 0.06
    weight_decay: _Factor = 0.01
    rank: _Natural = 32
    low_rank_scale: _Positive = 2.0
    max_tokens: _Window = 256
    window: _Window | None = None
    earlier_tokens: _Natural | None = 32
    low_rank_dropout: _Share = 0.0
    partial_weight: _Factor = 0.5
    group_weight: _Factor = 0.5
    kind_smoothing: _Share = 0.05
    main_share: _Share = 0.8
    teacher_share: _Share = 0.7
    context_dropout: _Share = 0.1
    apostrophe_swaps: _Share = 0.2
    patience: _Count = 2
    checkpoint_steps: _Count = 50
    seed: _Natural = 42
    head_seed: _Natural | None = None
    is_bf16: _Flag = True

    @property
    def reads(self) -> int:
        """Return how many tokens of a text the weights in use read."""
        return self.max_tokens if self.window is None else self.window

    def changed(self, **given: Any) -> TrainingSettings:  # noqa: ANN401  # each field has its type
        """Return the settings with some fields as given, held to what a recipe's are held to.

        Raises:
            TrainingError: A field is unknown or out of range; the message names it.
        """
        return validate(TrainingSettings, {**asdict(self), **given}, where="training settings", error=TrainingError)
