"""Where HTTP is served and to whom: address, token, TLS, and the hosts and origins that may ask.

Everything here is settled before the first request, so that what cannot be served safely is not
served at all; and before the SDK is imported, so that it is said at once.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path

from muniment.bridge.options import HttpOptions
from muniment.kit.errors import InvalidArgumentError, PreconditionError

__all__ = ["Door", "open_door"]

TOKEN_LEAST_CHARACTERS = 16

_USUAL_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Door:
    """A socket that listens, and who is let in."""

    listening: socket.socket
    url: str
    """Without a path."""
    token: str | None = field(repr=False)
    """What callers must bring; None where they need nothing."""
    tls: ssl.SSLContext | None
    folder: Path
    """The project of callers that name none."""
    hosts: tuple[str, ...]
    origins: tuple[str, ...]
    pages: tuple[str, ...]
    """Those of the origins whose pages may read the answers."""


@contextmanager
def open_door(options: HttpOptions) -> Iterator[Door]:
    """Listen as the options say, until the block is left.

    Raises:
        InvalidArgumentError: A file or folder cannot be used.
        PreconditionError: The address cannot be used, or not safely.
    """
    token, context, folder = _read_token(options), _tls(options), _folder(options)
    with _listen(options, token) as listening:
        scheme = "http" if context is None else "https"
        port = listening.getsockname()[1]
        hosts = (*_own_hosts(options.host, port, scheme), *options.allowed_hosts)
        own = tuple(f"{one}://{host}" for host in hosts for one in _USUAL_PORTS)
        yield Door(
            listening=listening,
            url=f"{scheme}://{_bracketed(options.host)}:{port}",
            token=token,
            tls=context,
            folder=folder,
            hosts=hosts,
            origins=(*own, *options.allowed_origins),
            pages=options.allowed_origins,
        )


def _listen(options: HttpOptions, token: str | None) -> socket.socket:
    if not _is_loopback(options.host) and (token is None or options.certificate is None):
        raise PreconditionError(
            f"{options.host} is not of this machine alone, so callers need TLS and a token",
            reason="HTTP_UNSAFE",
            fix="give --token-file, --tls-certificate and --tls-key, or serve 127.0.0.1",
        )
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    try:
        return socket.create_server((options.host, options.port), family=family)
    except OSError as error:
        raise PreconditionError(
            f"{options.host}:{options.port} cannot be served: {error.strerror or error}",
            reason="HTTP_ADDRESS_UNUSABLE",
            fix="choose another address or port",
        ) from error


def _tls(options: HttpOptions) -> ssl.SSLContext | None:
    if options.certificate is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        # An encrypted key is refused: whoever starts this has no terminal to be asked at.
        context.load_cert_chain(options.certificate, options.key, password="")
    except (OSError, ValueError) as error:
        raise InvalidArgumentError(
            f"{options.certificate} with {options.key} cannot be used: {error}",
            reason="TLS_UNUSABLE",
            field="--tls-certificate",
            fix="give a certificate chain and its unencrypted key, both in PEM",
        ) from error
    return context


def _read_token(options: HttpOptions) -> str | None:
    if options.token_file is None:
        return None
    path = Path(options.token_file)
    try:
        mode = path.stat().st_mode
        token = path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise _token_unreadable(f"{path} cannot be read: {error}", None) from error
    if mode & 0o077:
        raise _token_unreadable(f"{path} can be read by others", f"run `chmod 600 {path}`")
    fresh = f"run `openssl rand -hex 32 > {path}`"
    if len(token) < TOKEN_LEAST_CHARACTERS:
        few = f"the token in {path} is shorter than {TOKEN_LEAST_CHARACTERS} characters"
        raise _token_unreadable(few, fresh)
    if not (token.isascii() and token.isprintable() and " " not in token):
        odd = f"the token in {path} holds what no header can: spaces or other than ASCII"
        raise _token_unreadable(odd, fresh)
    return token


def _folder(options: HttpOptions) -> Path:
    folder = Path(options.project or ".").resolve()
    if not folder.is_dir():
        raise InvalidArgumentError(
            f"{folder} is no folder", reason="PROJECT_ROOT_MISSING", field="--project"
        )
    return folder


def _own_hosts(host: str, port: int, scheme: str) -> list[str]:
    names = {_bracketed(host)}
    if _is_loopback(host):
        names |= {"127.0.0.1", "localhost", "[::1]"}
    hosts = [f"{name}:{port}" for name in sorted(names)]
    # Clients leave the usual port out.
    return hosts + (sorted(names) if port == _USUAL_PORTS[scheme] else [])


def _token_unreadable(message: str, fix: str | None) -> InvalidArgumentError:
    return InvalidArgumentError(message, reason="TOKEN_UNREADABLE", field="--token-file", fix=fix)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
