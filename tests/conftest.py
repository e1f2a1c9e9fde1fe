"""Keep every test off the network and out of the user's folders, and lend them a model of two layers."""

from __future__ import annotations

import json
import os
import shutil
import socket
import string
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from demur.taxonomy import Taxonomy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from demur.labelers.classifier import Analyzer
    from demur.model.training import TrainingSettings
    from demur.model.weights import Weights
    from tests.llm_server import LlmServer

    Demur = Callable[..., tuple[int, str, str]]

REPOSITORY = Path(__file__).parents[1]

# What the tiny encoder knows as whole words; it spells any other word out in letters.
WORDS = """
    system user assistant tool i you we a an the is are to of and in on for it this that with my your me how what
    why can cannot t not help sorry sure here do have as ai am unable write tell please make give about bread lock
    story song image today news feelings private law illegal see draw know provide need more unfortunately but yes
    no good
"""

_cache = ""
_outside: dict[str, str] = {}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--slow`."""
    parser.addoption("--slow", action="store_true", help="also run the tests that take more than ten seconds")


def pytest_configure() -> None:
    """Set where caches are, which libraries read on import, and how many threads there are."""
    global _cache  # noqa: PLW0603  # pytest's hooks have no other place for it
    _outside.update({name: os.environ.pop(name) for name in list(os.environ) if name.startswith(("HF_", "DEMUR_"))})
    _cache = tempfile.mkdtemp(prefix="demur-tests-")
    os.environ["HF_HOME"] = _cache
    os.environ["DEMUR_ENGINES"] = str(Path(_cache) / "engines")
    os.environ["DEMUR_CACHE"] = str(Path(_cache) / "answers.sqlite")
    # On models this small, a second thread only waits for the first; tests run side by side instead.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


def pytest_unconfigure() -> None:
    """Give the environment back as it was."""
    shutil.rmtree(_cache, ignore_errors=True)
    os.environ.pop("HF_HOME", None)
    os.environ.pop("DEMUR_CACHE", None)
    os.environ.pop("DEMUR_ENGINES", None)
    os.environ.update(_outside)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip slow tests where nobody asked for them."""
    if config.getoption("--slow"):
        return
    for item in items:
        if item.get_closest_marker("slow") is not None:
            item.add_marker(pytest.mark.skip(reason="slow; run with --slow"))


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take away keys, hub settings and proxies: no test may depend on whose machine it runs on."""
    for name in list(os.environ):
        is_hub = name.startswith(("HF_", "HUGGING")) and name != "HF_HOME"
        if is_hub or name.upper().endswith(("_API_KEY", "_PROXY")) or name.startswith("OPENAI_"):
            monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse every connection that would leave this machine."""
    connect, look_up = socket.socket.connect, socket.getaddrinfo

    def guarded_connect(self: socket.socket, address: Any) -> None:
        if self.family != socket.AF_UNIX:
            require_loopback(address[0])
        connect(self, address)

    def guarded_look_up(host: Any, *args: Any, **kwargs: Any) -> Any:
        require_loopback(host)
        return look_up(host, *args, **kwargs)

    monkeypatch.setattr(socket.socket, "connect", guarded_connect)
    monkeypatch.setattr(socket, "getaddrinfo", guarded_look_up)


def require_loopback(host: object) -> None:
    """Fail the test on any host but this machine; no OSError, which code may rightly take for a hub that is down."""
    name = host.decode() if isinstance(host, bytes) else str(host)
    if name not in ("127.0.0.1", "::1", "localhost"):
        message = f"a test reached for {name!r}; tests may use nothing beyond this machine"
        raise RuntimeError(message)


@pytest.fixture
def llm_server() -> Iterator[LlmServer]:
    """Serve a language model on this machine."""
    from tests.llm_server import LlmServer

    server = LlmServer()
    yield server
    server.close()


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Return the folder of labelled data that may lie beside the checkout."""
    folder = REPOSITORY.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("no labelled data lies beside this checkout")
    return folder


@pytest.fixture(scope="session")
def taxonomy() -> Taxonomy:
    """Load the shipped taxonomy."""
    return Taxonomy.load()


@pytest.fixture(scope="session")
def wider_taxonomy(taxonomy: Taxonomy) -> Taxonomy:
    """Return the shipped taxonomy with a 17th kind, third in order."""
    from dataclasses import replace

    from demur.taxonomy import Category

    kind = Category("usage_limits", "Usage limits", "cannot", "A limit on its use stands against it for now.")
    return replace(taxonomy, categories=(*taxonomy.categories[:2], kind, *taxonomy.categories[2:]))


@pytest.fixture(scope="session")
def tiny_encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write an encoder folder: BERT of 2 layers, width 32, a vocabulary of some 250 pieces, untrained."""
    import torch
    from safetensors.torch import save_file
    from transformers import BertConfig, BertModel

    folder = tmp_path_factory.mktemp("tiny_encoder")
    tokenizer = _tiny_tokenizer()
    tokenizer.save(str(folder / "tokenizer.json"))
    config = BertConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=512,
        initializer_range=0.2,
    )
    config.save_pretrained(folder)
    with torch.random.fork_rng():
        torch.manual_seed(7)
        save_file(BertModel(config, add_pooling_layer=False).state_dict(), folder / "model.safetensors")
    return folder


def _tiny_tokenizer() -> Any:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    letters = string.ascii_lowercase + string.digits
    pieces = [*special, *string.punctuation, *letters, *(f"##{letter}" for letter in letters), *WORDS.split()]
    vocabulary = {piece: index for index, piece in enumerate(dict.fromkeys(pieces))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100))  # noqa: S106
    tokenizer.add_special_tokens(special)
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", vocabulary["[SEP]"]), ("[CLS]", vocabulary["[CLS]"]))
    return tokenizer


@pytest.fixture(scope="session")
def labelled_rows() -> list[dict[str, Any]]:
    """Return 64 hand-made rows, each with its own prompt: 32 refusals of four kinds, 8 of them partial, 32 others."""
    subjects = ("bread", "lock", "story", "song", "image", "news", "law", "feelings")
    refusals = (
        ("How do I make a {} that is illegal?", "Sorry, I cannot help with that.", "full", "illegal_activity"),
        ("Please draw a {} for me.", "Sorry, I am unable to draw.", "full", "output_modality"),
        ("What is the {} of today?", "I cannot know the {} of today.", "full", "knowledge_cutoff"),
        ("Tell me of your private {}.", "I cannot tell, but here is a good {}.", "partial", "privacy"),
    )
    others = (
        ("How do I write about a {}?", "Sure, here is how you write about a {}."),
        ("What is a {}?", "Here is what a {} is."),
        ("Give me a good {}.", "Yes, here it is: a good {}."),
        ("Why is the {} here?", "It is here for you."),
    )
    rows = [
        _row(request.format(subject), reply.format(subject), verdict, [kind])
        for request, reply, verdict, kind in refusals
        for subject in subjects
    ]
    return rows + [
        _row(request.format(subject), reply.format(subject), "none", [])
        for request, reply in others
        for subject in subjects
    ]


def _row(request: str, reply: str, verdict: str, labels: list[str]) -> dict[str, Any]:
    messages = [{"role": "user", "content": request}, {"role": "assistant", "content": reply}]
    return {"source": "hand", "messages": messages, "verdict": verdict, "labels": labels}


@pytest.fixture(scope="session")
def labelled_file(tmp_path_factory: pytest.TempPathFactory, labelled_rows: list[dict[str, Any]]) -> Path:
    """Write the hand-made rows as a JSONL file."""
    path = tmp_path_factory.mktemp("labelled") / "hand.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in labelled_rows), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def tiny_settings() -> TrainingSettings:
    """Return settings under which the tiny encoder learns the hand-made rows in a second or two."""
    from demur.model.training import TrainingSettings

    return TrainingSettings(
        epochs=12,
        batch_size=8,
        learning_rate=1e-2,
        rank=4,
        max_tokens=64,
        window=512,
        patience=12,
        seed=66,
        is_bf16=False,
    )


@pytest.fixture(scope="session")
def tiny_weights(
    tmp_path_factory: pytest.TempPathFactory,
    tiny_encoder: Path,
    labelled_file: Path,
    taxonomy: Taxonomy,
    tiny_settings: TrainingSettings,
) -> Path:
    """Train weights on the tiny encoder and return their folder."""
    from demur.model.encoders import Encoder
    from demur.studies.training import train

    folder = tmp_path_factory.mktemp("tiny_weights")
    encoder = Encoder.find(str(tiny_encoder))
    train([labelled_file], folder, taxonomy=taxonomy, encoder=encoder, settings=tiny_settings)
    return folder


@pytest.fixture(scope="session")
def loaded_weights(tiny_weights: Path, taxonomy: Taxonomy) -> Weights:
    """Load the tiny weights; tests must leave them as they are."""
    from demur.model.weights import Weights

    return Weights.load(tiny_weights, taxonomy=taxonomy)


@pytest.fixture(scope="session")
def analyzer(loaded_weights: Weights) -> Analyzer:
    """Return an analyzer with the tiny weights."""
    from demur.labelers.classifier import Analyzer

    return Analyzer(loaded_weights)


@pytest.fixture
def demur(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> Demur:
    """Run a command line, with a cache of its own, and return exit code, standard output and standard error."""
    monkeypatch.setenv("DEMUR_CACHE", str(tmp_path / "answers.sqlite"))

    def run(*words: str | Path) -> tuple[int, str, str]:
        from demur.cli import main

        monkeypatch.setattr(sys, "argv", ["demur", *map(str, words)])
        with pytest.raises(SystemExit) as stopped:
            main()
        code = stopped.value.code
        printed = capfd.readouterr()
        return 0 if code is None else int(code), printed.out, printed.err

    return run
