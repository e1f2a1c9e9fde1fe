"""Judge replies with an encoder that was not trained: the baseline that training has to beat."""

from __future__ import annotations

from typing import TYPE_CHECKING

from demur.labelers.classifier import Analyzer
from demur.model.frozen import FrozenEngine
from demur.model.network import RefusalNetwork
from demur.model.weights import Manifest, Weights

if TYPE_CHECKING:
    from collections.abc import Sequence

    from demur.model.encoders import Encoder
    from demur.model.settings import TrainingSettings
    from demur.model.targets import Example
    from demur.taxonomy import Taxonomy

__all__ = ["frozen_analyzer"]


def frozen_analyzer(
    encoder: Encoder, rows: Sequence[Example], *, taxonomy: Taxonomy, settings: TrainingSettings
) -> Analyzer:
    """Fit logistic regressions on a frozen encoder's [CLS], and let an analyzer judge by them at the usual thresholds.

    Args:
        encoder: Stays as it is.
        rows: Training examples.
        taxonomy: Names the kinds.
        settings: Give the windows of training and of judging.

    Raises:
        WeightsError: The encoder has no room for these windows.
    """
    encoder.require(max(settings.max_tokens, settings.reads))
    engine = FrozenEngine.fit(encoder, rows, n_categories=len(taxonomy), max_tokens=settings.max_tokens)
    manifest = Manifest(
        encoder=encoder.name,
        encoder_sha256=encoder.sha256,
        encoder_files_sha256=encoder.files_sha256,
        taxonomy_fingerprint=taxonomy.fingerprint,
        categories=taxonomy.keys,
        low_rank_scale=settings.low_rank_scale,
        max_tokens=settings.reads,
        earlier_tokens=settings.earlier_tokens,
        thresholds={},
        calibration={},
        held_out={},
        training={},
    )
    weights = Weights(
        encoder.tokenizer(), encoder, manifest, taxonomy, lambda: RefusalNetwork(encoder.network(), len(taxonomy))
    )
    return Analyzer(weights, engine=engine)
