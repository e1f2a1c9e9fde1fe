"""Save and load what training changed: adapters and heads, bound to an encoder and a taxonomy.

A weights folder holds `weights.safetensors`, every trained tensor under its name in the network, and `manifest.json`.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from demur.documents import user_path
from demur.errors import OutputError, WeightsError
from demur.model.encoders import Encoder, sha256_of
from demur.model.first_look import FirstLook  # noqa: TC001  # pydantic reads the annotation
from demur.verdict import Thresholds

if TYPE_CHECKING:
    from collections.abc import Callable

    from tokenizers import Tokenizer
    from torch import Tensor
    from transformers import BertModel

    from demur.model.network import RefusalNetwork
    from demur.taxonomy import Taxonomy

__all__ = [
    "Manifest",
    "Weights",
    "encoder_of",
    "read_tensors",
    "require_encoder",
    "require_taxonomy",
    "save_weights",
    "shipped_weights",
]

_TENSORS = "weights.safetensors"
_MANIFEST = "manifest.json"
_FORMAT = 1


class _Versioned(BaseModel):
    """Read the version of a layout, whatever else that has."""

    format: int = _FORMAT


class Manifest(BaseModel):
    """Describe trained weights: what they fit, how they decide, how they were made.

    Attributes:
        format: Version of this layout.
        encoder: Name of the encoder that was trained on.
        encoder_sha256: Digest of that encoder's `model.safetensors`.
        encoder_files_sha256: Digest over its tokenizer and configuration, too; None in weights of before it was kept.
        taxonomy_fingerprint: Fingerprint of the taxonomy that the head's labels follow.
        categories: Keys of the head's labels, in order.
        low_rank_scale: Factor s of the low-rank updates, W + s · B A.
        max_tokens: Window that is judged with; that of the training may have been shorter.
        earlier_tokens: The most that is read of the turns between system prompt and last request; None for all that the
            window holds, as weights of before it was kept do.
        thresholds: Where probabilities become decisions, by the names in `Thresholds`: for `refusal` always 0.5; for
            `partial` and `further` as fitted on held-out rows, where these are enough.
        calibration: What was fitted on held-out rows and folded into the heads, for the record.
        held_out: Gate probabilities of rows that were neither trained nor calibrated on, by true label: `refusal`,
            `compliance`, each rising.
        held_out_prompts: Which prompt each of these rows answers, counted from 0: rows of one depend on each other.
            None in weights of before it was kept.
        held_out_kinds: Probabilities of the true main kinds of such rows that refuse, given that they do, rising; what
            sets of kinds are calibrated on. None in weights of before there were such sets.
        first_look: Which texts are settled at a first look through a short window; None where none was fitted.
        training: How the weights were made: data files with digests and counts, settings, history; of averaged weights,
            those records of each.
        tensors_sha256: Digest of `weights.safetensors`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: int = _FORMAT
    encoder: str
    encoder_sha256: str
    encoder_files_sha256: str | None = None
    taxonomy_fingerprint: str
    categories: tuple[str, ...]
    low_rank_scale: float
    max_tokens: int
    earlier_tokens: Annotated[int, Field(ge=0, strict=True)] | None = None
    thresholds: dict[str, float]
    calibration: dict[str, Any]
    held_out: dict[str, list[float]]
    held_out_prompts: dict[str, list[int]] | None = None
    held_out_kinds: list[Annotated[float, Field(ge=0, le=1)]] | None = None
    first_look: FirstLook | None = None
    training: dict[str, Any]
    tensors_sha256: str = ""

    @model_validator(mode="after")
    def _have_prompts(self) -> Self:
        """Refuse rows and prompts that do not go together."""
        n_rows = {side: len(rows) for side, rows in self.held_out.items()}
        n_prompts = {side: len(prompts) for side, prompts in (self.held_out_prompts or {}).items()}
        if self.held_out_prompts is not None and n_rows != n_prompts:
            message = f"held_out has rows {n_rows}, and held_out_prompts has {n_prompts}: give each row its prompt"
            raise ValueError(message)
        return self

    @field_validator("thresholds")
    @classmethod
    def _are_thresholds(cls, thresholds: dict[str, float]) -> dict[str, float]:
        unknown = thresholds.keys() - {field.name for field in fields(Thresholds)}
        if unknown:
            message = f"{min(unknown)!r} is no threshold"
            raise ValueError(message)
        return asdict(Thresholds(**thresholds))

    @property
    def identity(self) -> dict[str, Any]:
        """Return what decides the probabilities that texts get, the tensors and how much of a text they see."""
        return {
            "weights": self.tensors_sha256,
            "encoder": self.encoder_files_sha256,
            "low_rank_scale": self.low_rank_scale,
            **self.view,
        }

    @property
    def view(self) -> dict[str, Any]:
        """Return how much of a conversation is read, as `Renderer` takes it."""
        return {"max_tokens": self.max_tokens, "earlier_tokens": self.earlier_tokens}

    @property
    def held_out_seed(self) -> int | None:
        """Return the seed that drew the prompts held out from training, where it is recorded."""
        seed = self.training.get("held_out_seed", self.training.get("settings", {}).get("seed"))
        return seed if isinstance(seed, int) else None

    @property
    def met_prompts(self) -> frozenset[str] | None:
        """Return digests of the prompts that the seed would hold out and training met; None where nothing is said."""
        met = self.training.get("met_prompts")
        return None if met is None else frozenset(map(str, met))

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read and check the manifest of a weights folder.

        Raises:
            WeightsError: It is missing, damaged, or of a format that this version does not know.
        """
        path = folder / _MANIFEST
        if not path.is_file():
            message = f"no weights at {str(folder)!r}: {_MANIFEST} is missing; give a folder that `demur train` wrote"
            raise WeightsError(message)
        content = path.read_bytes()
        try:
            # A later layout has fields that this version does not know, and is not damaged by them.
            version = _Versioned.model_validate_json(content).format
            manifest = cls.model_validate_json(content) if version == _FORMAT else None
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"])
            message = f"{path} is damaged: {place or 'the file'}: {first['msg']}; restore it or train again"
            raise WeightsError(message) from error
        if manifest is None:
            message = f"{path} has format {version}; this version reads format {_FORMAT}"
            raise WeightsError(message)
        return manifest


@dataclass(frozen=True)
class Weights:
    """Hold what belongs to a trained network, and the network as soon as somebody asks for it.

    Attributes:
        tokenizer: The encoder's.
        encoder: What was trained on.
        manifest: Says how the weights decide, and how they were made.
        taxonomy: Names the kinds.
        build: Makes the network: called once at most, since engines that were built from it do without, and without
            torch, whose import takes longer than to judge ten rows.
    """

    tokenizer: Tokenizer
    encoder: Encoder
    manifest: Manifest
    taxonomy: Taxonomy
    build: Callable[[], RefusalNetwork]

    @cached_property
    def network(self) -> RefusalNetwork:
        """Return the network, ready to judge.

        Raises:
            WeightsError: Encoder or tensors are damaged, or do not fit each other.
        """
        return self.build()

    @property
    def thresholds(self) -> Thresholds:
        """Return where probabilities become decisions, as the manifest has it."""
        return Thresholds(**self.manifest.thresholds)

    @classmethod
    def load(cls, folder: Path | None = None, *, taxonomy: Taxonomy, encoder: str | None = None) -> Self:
        """Load weights onto the encoder that they were trained on; None for the shipped ones.

        Args:
            folder: A folder that `demur train` wrote.
            taxonomy: Must have the fingerprint that the weights were trained under.
            encoder: Where the encoder is, if not where the manifest says; must be the same file.

        Raises:
            WeightsError: Something is missing, damaged, or does not belong together.
        """
        folder = shipped_weights() if folder is None else user_path(folder)
        manifest = Manifest.load(folder)
        require_taxonomy(taxonomy, manifest, folder)
        found = encoder_of(manifest, encoder, folder)
        _require_tensors(folder, manifest)
        return cls(found.tokenizer(), found, manifest, taxonomy, lambda: _network(found, manifest, folder))


def shipped_weights() -> Path:
    """Return the folder of the weights that come with the package."""
    return Path(str(resources.files("demur") / "weights"))


def save_weights(folder: Path, tensors: dict[str, Tensor], manifest: Manifest) -> None:
    """Write a weights folder; the manifest last, so that a folder with a manifest is whole.

    Raises:
        OutputError: It cannot be written.
    """
    from safetensors import SafetensorError
    from safetensors.torch import save

    parts = {name: folder / f"{name}.part" for name in (_TENSORS, _MANIFEST)}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # `save_file` leaves a file that nobody else may read, whatever the umask says.
        parts[_TENSORS].write_bytes(save(tensors))
        whole = manifest.model_copy(update={"tensors_sha256": sha256_of(parts[_TENSORS])})
        parts[_MANIFEST].write_text(whole.model_dump_json(indent=1) + "\n", encoding="utf-8")
        for name, part in parts.items():
            part.replace(folder / name)
    except (OSError, SafetensorError) as error:
        message = f"the weights in {str(folder)!r} cannot be written ({error}); make room there, or give another folder"
        raise OutputError(message) from error
    finally:
        for part in parts.values():
            with suppress(OSError):
                part.unlink(missing_ok=True)


def encoder_of(manifest: Manifest, name: str | None, folder: Path) -> Encoder:
    """Find the encoder that weights were trained on.

    Args:
        manifest: The weights'.
        name: Where the encoder is, if not where the manifest says.
        folder: Where the weights are, for messages.

    Raises:
        WeightsError: It cannot be found, or is another one.
    """
    encoder = Encoder.find(manifest.encoder if name is None else name)
    require_encoder(encoder, manifest, folder)
    return encoder


def require_encoder(encoder: Encoder, manifest: Manifest, folder: Path) -> None:
    """Refuse an encoder that weights were not trained on.

    Raises:
        WeightsError: Its tensors are others; or its tokenizer or configuration, where the manifest knows these.
    """
    if encoder.sha256 != manifest.encoder_sha256:
        message = (
            f"the weights in {str(folder)!r} were trained on encoder {manifest.encoder!r} "
            f"(sha256 {manifest.encoder_sha256[:12]}), but {encoder.name!r} has {encoder.sha256[:12]}; "
            "give that encoder, or train on this one with `demur train --encoder`"
        )
        raise WeightsError(message)
    if manifest.encoder_files_sha256 not in (None, encoder.files_sha256):
        message = (
            f"the weights in {str(folder)!r} were trained on encoder {manifest.encoder!r}, and {encoder.name!r} has "
            "its tensors, but another tokenizer.json or config.json; give the files that were trained on, or train on "
            "these with `demur train --encoder`"
        )
        raise WeightsError(message)


def require_taxonomy(taxonomy: Taxonomy, manifest: Manifest, folder: Path) -> None:
    """Refuse a taxonomy that weights were not trained under.

    Raises:
        WeightsError: It is another.
    """
    if manifest.taxonomy_fingerprint != taxonomy.fingerprint:
        message = (
            f"the weights in {str(folder)!r} were trained under another taxonomy ({len(manifest.categories)} "
            f"categories, fingerprint {manifest.taxonomy_fingerprint[:12]}); this one has {len(taxonomy)} and "
            f"{taxonomy.fingerprint[:12]}; give the taxonomy of the weights, or train with this one"
        )
        raise WeightsError(message)


def _network(encoder: Encoder, manifest: Manifest, folder: Path) -> RefusalNetwork:
    import torch

    from demur.model.network import RefusalNetwork

    encoder.require(manifest.max_tokens)
    # Fresh layers draw numbers that are written over: whoever has set a seed is to find the generator as it was.
    with torch.random.fork_rng(devices=[]):
        # To the network it is the class that was trained: the same parts and tensors under the same names.
        network = RefusalNetwork(cast("BertModel", encoder.lean_network()), len(manifest.categories))
    tensors = read_tensors(folder, manifest)
    try:
        network.load_trained(tensors, scale=manifest.low_rank_scale)
    except KeyError as error:
        message = f"{folder / _TENSORS} does not fit the network: tensor {error} is missing or unknown; train again"
        raise WeightsError(message) from error
    except RuntimeError as error:
        message = f"{folder / _TENSORS} does not fit the network: {error}; train again"
        raise WeightsError(message) from error
    return network.eval()


def read_tensors(folder: Path, manifest: Manifest) -> dict[str, Tensor]:
    """Read the tensors of a weights folder, by name.

    Raises:
        WeightsError: They are missing, or not those of the manifest.
    """
    from safetensors.torch import load_file

    _require_tensors(folder, manifest)
    return load_file(folder / _TENSORS)


def _require_tensors(folder: Path, manifest: Manifest) -> None:
    path = folder / _TENSORS
    if not path.is_file():
        message = f"no file {str(path)!r} beside its manifest; restore it or train again"
        raise WeightsError(message)
    try:
        digest = sha256_of(path)
    except OSError as error:
        message = f"{path} cannot be read ({error.strerror}); see to its permissions, or give other weights"
        raise WeightsError(message) from error
    if digest != manifest.tensors_sha256:
        message = (
            f"{path} is damaged: its sha256 is {digest}, and its manifest says {manifest.tensors_sha256}; "
            "restore it or train again"
        )
        raise WeightsError(message)
