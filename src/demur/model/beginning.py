"""Begin a training where another one ended: with its adapters and heads, matched to a taxonomy by the kinds' keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import torch
from torch import Tensor

from demur.errors import TrainingError, WeightsError
from demur.model.weights import Manifest, encoder_of, read_tensors

if TYPE_CHECKING:
    from pathlib import Path

    from demur.model.encoders import Encoder
    from demur.model.network import RefusalNetwork
    from demur.taxonomy import Taxonomy

__all__ = ["Beginning"]

_WEIGHT, _BIAS = "kinds.classifier.weight", "kinds.classifier.bias"


@dataclass(frozen=True, slots=True)
class Beginning:
    """Hold the weights that a training begins with.

    The heads come with their calibration folded in: the training begins with what they say, not with their raw logits.

    Attributes:
        manifest: What is known of them.
        encoder: What they were trained on, and go on with.
        tensors: Adapters (or whole layers) and heads, by name.
    """

    manifest: Manifest
    encoder: Encoder
    tensors: dict[str, Tensor]

    @classmethod
    def load(cls, folder: Path, *, encoder: str | None = None) -> Self:
        """Read a weights folder, of whatever taxonomy.

        Args:
            folder: A folder that `demur train` wrote.
            encoder: Where the encoder is, if not where the manifest says; must be the same file.

        Raises:
            WeightsError: Something is missing or damaged, or the encoder is another one.
        """
        manifest = Manifest.load(folder)
        return cls(manifest, encoder_of(manifest, encoder, folder), read_tensors(folder, manifest))

    @property
    def rank(self) -> int:
        """Return the rank of the adapters; 0 where whole layers were trained."""
        return max((tensor.shape[0] for name, tensor in self.tensors.items() if name.endswith(".down")), default=0)

    @property
    def seed(self) -> int | None:
        """Return the seed that drew the held-out prompts, where the manifest knows it."""
        return self.manifest.held_out_seed

    def added(self, taxonomy: Taxonomy) -> tuple[str, ...]:
        """Name the kinds of a taxonomy that the weights do not know."""
        return tuple(key for key in taxonomy.keys if key not in self.manifest.categories)

    def left_out(self, taxonomy: Taxonomy) -> tuple[str, ...]:
        """Name the kinds that the weights know and a taxonomy does not have."""
        return tuple(key for key in self.manifest.categories if key not in taxonomy)

    def require_rank(self, rank: int) -> None:
        """Check that a training of this rank can go on from here.

        Raises:
            TrainingError: Adapters of one rank do not become others; only rank 0 takes in all, merged into its layers.
        """
        if rank not in (0, self.rank):
            message = (
                f"the weights to begin with have adapters of rank {self.rank}, and the settings say {rank}; "
                f"give --rank {self.rank}, or write it into the recipe"
            )
            raise TrainingError(message)

    @torch.no_grad()
    def place(self, network: RefusalNetwork, taxonomy: Taxonomy, *, scale: float) -> None:
        """Put the weights into a fresh network, in place.

        A kind keeps the row of its key, wherever the taxonomy has it. A kind that is new begins as the mean of its
        group: weights and bias are the means over the group's known kinds, and over all of them where the group has
        none. Its logit is then the mean of theirs, which the largest never lies below: until it is trained, no new kind
        is the most probable one of its group, and the order of the others is what it was.

        Args:
            network: Wrapped with adapters of the same rank, or with its layers set free.
            taxonomy: Gives the kinds of the network's head, in order.
            scale: Factor s of the network's adapters; the weights' own may have been another.

        Raises:
            TrainingError: No kind of the taxonomy is known to the weights.
            WeightsError: The tensors do not fit the network.
        """
        tensors = {name: tensor.float() for name, tensor in self.tensors.items()}
        rows = self._rows(taxonomy)
        tensors[_WEIGHT], tensors[_BIAS] = rows @ tensors[_WEIGHT], rows @ tensors[_BIAS]
        try:
            if any(name.endswith(".up") for name, _ in network.named_parameters()):
                _copy(network, tensors, factor=self.manifest.low_rank_scale / scale)
            else:
                network.load_trained(tensors, scale=self.manifest.low_rank_scale)
        except (KeyError, RuntimeError) as error:
            message = f"the weights to begin with do not fit the network: {error}; train from the beginning"
            raise WeightsError(message) from error

    def _rows(self, taxonomy: Taxonomy) -> Tensor:
        """Return what each kind takes from the known ones, rows summing to 1. *Shape:* `(n_kinds, n_known)`."""
        known = self.manifest.categories
        shared = [key for key in taxonomy.keys if key in known]
        if not shared:
            message = (
                f"the weights to begin with know none of the taxonomy's kinds, but {', '.join(known)}; "
                "keep the keys of kinds that go on, or train from the beginning"
            )
            raise TrainingError(message)
        rows = torch.zeros(len(taxonomy), len(known))
        for i, key in enumerate(taxonomy.keys):
            members = [each for each in shared if taxonomy.group_of(each) == taxonomy.group_of(key)]
            sources = [key] if key in known else members or shared
            rows[i, [known.index(each) for each in sources]] = 1 / len(sources)
        return rows


def _copy(network: RefusalNetwork, tensors: dict[str, Tensor], *, factor: float) -> None:
    free = {name: parameter for name, parameter in network.named_parameters() if parameter.requires_grad}
    if odd := free.keys() ^ tensors.keys():
        raise KeyError(min(odd))
    for name, parameter in free.items():
        if parameter.shape != tensors[name].shape:
            message = f"{name} is of shape {tuple(tensors[name].shape)} where {tuple(parameter.shape)} belongs"
            raise RuntimeError(message)
        parameter.copy_(tensors[name] * (factor if name.endswith(".up") else 1.0))
