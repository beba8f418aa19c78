"""Which inference servers the settings name, and where they listen."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from muniment.kit.errors import PreconditionError
from muniment.kit.paths import user_path
from muniment.kit.settings import ServerSettings, Settings

__all__ = ["DEFAULT_URL", "KEY_VARIABLE", "USUAL", "ServerAddress", "addresses"]

DEFAULT_URL = "http://127.0.0.1:8080"
"""Where llama-server listens unless it is told otherwise."""

KEY_VARIABLE = "SAKUR4_LLAMA_API_KEY"
"""A key of an earlier program's environment, for the usual server where no file is named."""

USUAL = "main"
"""Name of the server that the settings give without a name."""

_NONE = frozenset({"none", "off", "disabled"})
_SIMULATIONS = frozenset({"embedded", "mock", "sakur4://embedded"})
_UNIX = "unix:"


@dataclass(frozen=True)
class ServerAddress:
    """One inference server as the settings give it."""

    name: str
    url: str
    """Without user and password."""
    key_file: str = ""
    save_folder: str = ""
    """Its --slot-save-path as seen from here; empty where nobody told."""
    is_configured: bool = True
    """Somebody named it; else it is looked for at llama-server's own address."""
    variable_key: str = ""

    @property
    def folder_setting(self) -> str:
        """The setting that names its save folder."""
        return "llama_save_folder" if self.name == USUAL else f"servers.{self.name}.save_folder"

    @property
    def socket(self) -> str | None:
        """The unix socket that it listens on, where it does."""
        return "/" + self.url.removeprefix(_UNIX).lstrip("/") if self._is_unix else None

    @property
    def base_url(self) -> str:
        """What requests begin with."""
        return "http://llama-server" if self._is_unix else self.url.rstrip("/")

    @property
    def is_local(self) -> bool:
        """Whether it runs on this machine, as far as its address tells."""
        return self._is_unix or urlsplit(self.url).hostname in {"127.0.0.1", "::1", "localhost"}

    @property
    def _is_unix(self) -> bool:
        return self.url.startswith(_UNIX)

    def key(self) -> str | None:
        """Its API key, read anew each time; None where there is none.

        Raises:
            PreconditionError: The file cannot be read.
        """
        if not self.key_file:
            return self.variable_key or None
        try:
            return user_path(self.key_file).read_text(encoding="utf-8").strip() or None
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not text"
            raise PreconditionError(
                f"the key file {self.key_file} of the inference server {self.name} cannot be"
                f" read: {why}",
                reason="LLAMA_KEY_UNREADABLE",
                fix="correct `llama_key_file`, or the server's `key_file`, in the settings",
            ) from error


def addresses(
    settings: Settings, environment: Mapping[str, str] = os.environ
) -> tuple[ServerAddress, ...]:
    """The servers that the settings name, the usual one first.

    Raises:
        PreconditionError: An address is none, or the usual server is not among them.
    """
    named = [_named(name, one) for name, one in settings.servers.items()]
    backend = settings.backend.strip()
    if backend.lower() in _NONE:
        return ()
    if backend.lower() in _SIMULATIONS:
        raise PreconditionError(
            f"is {backend}: there is no simulated inference server here",
            reason="SETTING_INVALID",
            field="backend",
            fix="use auto, none, a URL, or a name of `servers`",
        )
    usual = [one for one in named if one.name == backend]
    if usual:
        return (*usual, *(one for one in named if one.name != backend))
    if backend != "auto" and not _has_scheme(backend):
        raise PreconditionError(
            f"is {backend}, which is neither auto, none, a URL nor a name of `servers`",
            reason="SETTING_INVALID",
            field="backend",
            fix="write http://HOST:PORT or unix:/PATH.sock, or add [servers.NAME]",
        )
    url = settings.llama_url if backend == "auto" else backend
    if not url and named:
        return tuple(named)
    own = ServerAddress(
        name=USUAL,
        url=_checked(url or DEFAULT_URL, "llama_url" if backend == "auto" else "backend"),
        key_file=settings.llama_key_file,
        save_folder=settings.llama_save_folder,
        is_configured=bool(url),
        variable_key=environment.get(KEY_VARIABLE, ""),
    )
    return (own, *named)


def _named(name: str, one: ServerSettings) -> ServerAddress:
    if name in {USUAL, "auto"} or not name.isprintable() or _has_scheme(name):
        raise PreconditionError(
            f"may not be called {name!r}",
            reason="SETTING_INVALID",
            field="servers",
            fix="give the server another name",
        )
    url = _checked(one.url, f"servers.{name}.url")
    return ServerAddress(name, url, key_file=one.key_file, save_folder=one.save_folder)


def _has_scheme(text: str) -> bool:
    return text.startswith(("http://", "https://", _UNIX))


def _checked(url: str, field: str) -> str:
    try:
        parts = urlsplit(url)
        fine = _has_scheme(url) and (
            parts.path.startswith("/") and parts.path.strip("/") != ""
            if url.startswith(_UNIX)
            else bool(parts.hostname)
        )
        is_secret = bool(parts.username or parts.password)
        _ = parts.port
    except ValueError:
        fine, is_secret = False, False
    if is_secret:
        raise PreconditionError(
            "has a user or password in it",
            reason="SETTING_INVALID",
            field=field,
            fix="keep the key in a file and name it in `llama_key_file`",
        )
    if not fine:
        raise PreconditionError(
            "is no address of an inference server",
            reason="SETTING_INVALID",
            field=field,
            fix="write http://HOST:PORT or unix:/PATH.sock",
        )
    return url
