"""Which inference servers the settings name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from muniment.kit.errors import PreconditionError
from muniment.kit.settings import ServerSettings, Settings
from muniment.slots.addresses import DEFAULT_URL, ServerAddress, addresses


def _addresses(**settings: Any) -> tuple[ServerAddress, ...]:
    return addresses(Settings(**settings), {})


def test_without_settings_the_default_address_is_tried() -> None:
    (one,) = _addresses()
    assert (one.url, one.is_configured) == (DEFAULT_URL, False)


def test_a_url_makes_it_configured() -> None:
    for settings in ({"llama_url": "http://h:1"}, {"backend": "http://h:1"}):
        (one,) = _addresses(**settings)
        assert (one.name, one.url, one.is_configured) == ("main", "http://h:1", True)


@pytest.mark.parametrize("backend", ["none", "off", "Disabled"])
def test_none_means_none(backend: str) -> None:
    assert _addresses(backend=backend, llama_url="http://h:1") == ()


def test_the_usual_server_comes_first() -> None:
    servers = {name: ServerSettings(url=f"http://{name}:1") for name in ("a", "b")}
    assert [one.name for one in _addresses(servers=servers)] == ["a", "b"]
    assert [one.name for one in _addresses(servers=servers, backend="b")] == ["b", "a"]
    both = _addresses(servers=servers, llama_url="http://h:1")
    assert [one.name for one in both] == ["main", "a", "b"]


@pytest.mark.parametrize("backend", ["embedded", "mock", "sakur4://embedded"])
def test_there_is_no_simulation(backend: str) -> None:
    with pytest.raises(PreconditionError, match="no simulated inference server"):
        _addresses(backend=backend)


@pytest.mark.parametrize(
    "url",
    [
        "h:1",
        "ftp://h",
        "http://",
        "unix:",
        "unix:a.sock",
        "http://h:port",
        "http://[::1",
        "http://user:pw@h:1",
    ],
)
def test_what_is_no_address_is_refused_by_its_setting(url: str) -> None:
    with pytest.raises(PreconditionError) as refused:
        _addresses(llama_url=url)
    assert refused.value.field == "llama_url"
    assert "pw" not in str(refused.value)
    with pytest.raises(PreconditionError) as refused:
        _addresses(servers={"gpu": ServerSettings(url=url)})
    assert refused.value.field == "servers.gpu.url"


def test_a_socket_has_a_path() -> None:
    (one,) = _addresses(llama_url="unix:///run/llama.sock")
    assert (one.socket, one.is_local) == ("/run/llama.sock", True)
    assert _addresses(llama_url="unix:/run/llama.sock")[0].socket == "/run/llama.sock"
    assert _addresses(llama_url="http://gpu.lan:80")[0].is_local is False


def test_a_key_is_read_when_it_is_used(tmp_path: Path) -> None:
    file = tmp_path / "key"
    (one,) = _addresses(llama_key_file=str(file))
    with pytest.raises(PreconditionError) as refused:
        one.key()
    assert refused.value.reason == "LLAMA_KEY_UNREADABLE"
    file.write_text("first\n")
    assert one.key() == "first"
    file.write_text("second\n")
    assert one.key() == "second"


def test_the_key_of_a_user_that_is_not_there_cannot_be_read() -> None:
    (one,) = _addresses(llama_key_file="~no-such-user/key")
    with pytest.raises(PreconditionError, match="no-such-user"):
        one.key()


def test_the_predecessors_key_is_taken_where_no_file_is_named(tmp_path: Path) -> None:
    environment = {"SAKUR4_LLAMA_API_KEY": "theirs"}
    assert addresses(Settings(), environment)[0].key() == "theirs"
    file = tmp_path / "key"
    file.write_text("ours")
    assert addresses(Settings(llama_key_file=str(file)), environment)[0].key() == "ours"
