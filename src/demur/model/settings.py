"""Say how weights are trained."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["TrainingSettings"]


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
        max_tokens: Window of the training texts; shorter than the model's own for speed, since few texts are longer.
        low_rank_dropout: Share of the inputs of the low-rank updates that a step leaves out.
        partial_weight: Weight of the loss of *partial* beside the gate's.
        group_weight: Weight of the loss of the kinds' groups beside that of the kinds.
        kind_smoothing: Share of the target that is spread evenly over all kinds: one reader in twenty names another.
        main_share: Target share of the main kind where a reading names several.
        context_dropout: Share of the rows, drawn anew each epoch, whose gate sees the reply alone.
        apostrophe_swaps: Share of the rows, drawn anew each epoch, whose curly apostrophes become straight ones and the
            other way round: BERT's vocabulary keeps the two apart, and writers do not.
        patience: Epochs without a better validation score after which training stops.
        checkpoint_steps: Steps between checkpoints.
        seed: Seed of initial heads, order and dropout.
        is_bf16: Whether matrix products run in bfloat16 (autocast).
    """

    epochs: int = 3
    batch_size: int = 16
    learning_rate: float = 5e-4
    warmup: float = 0.06
    weight_decay: float = 0.01
    rank: int = 32
    low_rank_scale: float = 2.0
    max_tokens: int = 384
    low_rank_dropout: float = 0.05
    partial_weight: float = 0.5
    group_weight: float = 0.5
    kind_smoothing: float = 0.05
    main_share: float = 0.8
    context_dropout: float = 0.1
    apostrophe_swaps: float = 0.2
    patience: int = 2
    checkpoint_steps: int = 50
    seed: int = 42
    is_bf16: bool = True
