"""What is settled before HTTP is served."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from muniment.bridge.http.access import TOKEN_LEAST_CHARACTERS, open_door
from muniment.bridge.options import HttpOptions, read_options
from muniment.kit.errors import InvalidArgumentError, PreconditionError

TOKEN = "t" * TOKEN_LEAST_CHARACTERS


def told(*arguments: str, address: str = "127.0.0.1:0") -> HttpOptions:
    http = read_options(["--http", address, *arguments], {}).http
    assert http is not None
    return http


def with_token(folder: Path, content: bytes, mode: int = 0o600) -> HttpOptions:
    path = folder / "token"
    path.write_bytes(content)
    path.chmod(mode)
    return told("--token-file", str(path))


def test_loopback_needs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for host in ("127.0.0.1", "127.0.0.2", "localhost"):
        with open_door(told(address=f"{host}:0")) as door:
            port = door.listening.getsockname()[1]
            assert door.url == f"http://{host}:{port}"
            assert (door.token, door.tls, door.pages) == (None, None, ())
            assert door.folder == tmp_path.resolve()
            names = {"127.0.0.1", "localhost", "[::1]", host}
            assert set(door.hosts) == {f"{name}:{port}" for name in names}
            origins = {f"{scheme}://{one}" for one in door.hosts for scheme in ("http", "https")}
            assert set(door.origins) == origins
        with socket.create_server((host, port)):  # It listens no more.
            continue


def test_six_is_bracketed() -> None:
    with open_door(told(address="[::1]:0")) as door:
        port = door.listening.getsockname()[1]
        assert door.url == f"http://[::1]:{port}"
        assert f"[::1]:{port}" in door.hosts


def test_what_is_allowed_besides() -> None:
    options = told("--allow-host", "a:1", "--allow-origin", "https://page")
    with open_door(options) as door:
        assert door.hosts[-1] == "a:1"
        assert {"http://a:1", "https://a:1", "https://page"} <= set(door.origins)
        assert door.pages == ("https://page",)


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]", "192.0.2.1", "box.example", "127.0.0.1.evil"])
def test_others_are_not_served_without_tls_and_token(tmp_path: Path, host: str) -> None:
    token = tmp_path / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    for arguments in ((), ("--token-file", str(token))):
        with pytest.raises(PreconditionError, match="TLS and a token") as raised:
            open_door(told(*arguments, address=f"{host}:0")).__enter__()
        assert raised.value.reason == "HTTP_UNSAFE"


def test_a_token(tmp_path: Path) -> None:
    with open_door(with_token(tmp_path, f" {TOKEN}\n".encode())) as door:
        assert door.token == TOKEN
        assert TOKEN not in repr(door)


@pytest.mark.parametrize(
    ("content", "mode", "mentions"),
    [
        (TOKEN.encode(), 0o640, "can be read by others; run `chmod 600"),
        (TOKEN.encode(), 0o604, "can be read by others"),
        (TOKEN.encode(), 0o644, "can be read by others"),
        (b"", 0o600, "shorter than 16 characters"),
        (TOKEN[:-1].encode(), 0o600, "shorter than 16 characters"),
        ("größe-größe-größe".encode(), 0o600, "spaces or other than ASCII"),
        (b"two tokens, in one file", 0o600, "spaces or other than ASCII"),
        (b"\xff" * 32, 0o600, "cannot be read"),
    ],
)
def test_a_token_file_that_cannot_be_trusted(
    tmp_path: Path, content: bytes, mode: int, mentions: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=mentions) as raised:
        open_door(with_token(tmp_path, content, mode)).__enter__()
    assert (raised.value.reason, raised.value.field) == ("TOKEN_UNREADABLE", "--token-file")
    assert TOKEN not in str(raised.value)


def test_a_port_in_use() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(PreconditionError, match=f"{address} cannot be served") as raised:
            open_door(told(address=address)).__enter__()
    assert raised.value.reason == "HTTP_ADDRESS_UNUSABLE"


def test_files_and_folders_that_are_not_there(tmp_path: Path) -> None:
    nowhere = str(tmp_path / "nowhere")
    for arguments, reason in (
        (("--project", nowhere), "PROJECT_ROOT_MISSING"),
        (("--token-file", nowhere), "TOKEN_UNREADABLE"),
        (("--tls-certificate", nowhere, "--tls-key", nowhere), "TLS_UNUSABLE"),
    ):
        with pytest.raises(InvalidArgumentError, match="nowhere") as raised:
            open_door(told(*arguments)).__enter__()
        assert raised.value.reason == reason
