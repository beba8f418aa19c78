"""Who may call over HTTP, from where, and with what; and what is not served at all."""

from __future__ import annotations

import datetime
import socket
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.client import RemoteDisconnected
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.support.homes import a_home
from tests.support.http_client import Caller
from tests.support.http_server import HttpServer, refusal

pytestmark = pytest.mark.timeout(120)

TOKEN = "a-token-of-the-tests-0123456789"


@dataclass(frozen=True)
class Papers:
    """A certificate for 127.0.0.1 that signs itself, its key, and a token, each in a file."""

    certificate: Path
    key: Path
    token: Path

    def tls(self) -> tuple[str, ...]:
        """Arguments to speak HTTPS."""
        return ("--tls-certificate", str(self.certificate), "--tls-key", str(self.key))

    def trust(self) -> ssl.SSLContext:
        """What a client trusts that knows the certificate."""
        return ssl.create_default_context(cafile=self.certificate)


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Papers:
    folder = tmp_path_factory.mktemp("papers")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "muniment tests")])
    today = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(today - datetime.timedelta(days=1))
        .not_valid_after(today + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    papers = Papers(folder / "certificate.pem", folder / "key.pem", folder / "token")
    papers.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    papers.key.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    papers.token.write_text(f"{TOKEN}\n")
    papers.token.chmod(0o600)
    return papers


@pytest.fixture(scope="module")
def environment() -> Iterator[dict[str, str]]:
    """A home in which nothing runs: who may call is settled before any service is asked."""
    with a_home() as home:
        yield {"MUNIMENT_HOME": str(home.path)}


def statuses(caller: Caller, *headers: Mapping[str, str]) -> list[int]:
    """What a request is answered with that has these headers besides its own."""
    message, usual = caller.modern("server/discover")
    return [caller.post(message, {**usual, **more}).status for more in headers]


# --- Host and Origin


@pytest.fixture(scope="module")
def guarded(
    tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str]
) -> Iterator[HttpServer]:
    arguments = (
        *("--allow-host", "box.example:8443", "--allow-host", "any.example:*"),
        *("--allow-origin", "https://page.example"),
    )
    with HttpServer(
        *arguments, cwd=tmp_path_factory.mktemp("guarded"), environment=environment
    ) as server:
        yield server


def test_hosts(guarded: HttpServer) -> None:
    port = guarded.port
    right = [f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}"]
    allowed = ["box.example:8443", "any.example:1"]
    wrong = ["evil.example", f"evil.example:{port}", "127.0.0.1", "box.example:1", ""]
    caller = Caller(guarded)
    assert statuses(caller, *({"Host": host} for host in right + allowed)) == [200] * 5
    assert statuses(caller, *({"Host": host} for host in wrong)) == [421] * 5


def test_origins(guarded: HttpServer) -> None:
    caller = Caller(guarded)
    right = [f"http://localhost:{guarded.port}", "https://page.example", "http://box.example:8443"]
    wrong = ["https://evil.example", "http://page.example", "null", "https://page.example:1"]
    assert statuses(caller, *({"Origin": one} for one in right)) == [200] * 3
    assert statuses(caller, *({"Origin": one} for one in wrong)) == [403] * 4


def test_guards_hold_for_every_method_and_path(guarded: HttpServer) -> None:
    caller = Caller(guarded)
    for method in ("GET", "DELETE", "PUT", "OPTIONS"):
        for path in ("/mcp", "/mcp/all", "/"):
            assert caller.at(path).send(method, None, {"Host": "evil.example"}).status == 421


def test_the_page_of_an_allowed_origin_can_read_what_it_asks_for(guarded: HttpServer) -> None:
    caller = Caller(guarded)
    asks = {
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,mcp-protocol-version",
    }
    reply = caller.send("OPTIONS", None, {"Origin": "https://page.example", **asks})
    assert reply.status == 200
    assert reply.headers["access-control-allow-origin"] == "https://page.example"
    assert "authorization" in reply.headers["access-control-allow-headers"].lower()
    message, headers = caller.modern("server/discover")
    reply = caller.post(message, {**headers, "Origin": "https://page.example"})
    assert reply.headers["access-control-allow-origin"] == "https://page.example"
    assert "Mcp-Session-Id" in reply.headers["access-control-expose-headers"]
    refused = caller.send("OPTIONS", None, {"Origin": "https://evil.example", **asks})
    assert "access-control-allow-origin" not in refused.headers


# --- Tokens


@pytest.fixture(scope="module")
def locked(
    tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str], papers: Papers
) -> Iterator[HttpServer]:
    arguments = ("--token-file", str(papers.token))
    with HttpServer(
        *arguments, cwd=tmp_path_factory.mktemp("locked"), environment=environment
    ) as server:
        yield server


def test_the_right_token(locked: HttpServer) -> None:
    right = [{"Authorization": f"Bearer {TOKEN}"}, {"Authorization": f"bearer  {TOKEN} "}]
    assert statuses(Caller(locked), *right) == [200, 200]


@pytest.mark.parametrize(
    "given",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN[:-1]}",
        f"Bearer {TOKEN.upper()}",
        f"Basic {TOKEN}",
        TOKEN,
        "Bearer größe-ÿ",
    ],
)
def test_any_other_token(locked: HttpServer, given: str | None) -> None:
    caller = Caller(locked, headers={} if given is None else {"Authorization": given})
    for path in ("/mcp", "/mcp/all", "/"):
        for method in ("POST", "GET", "DELETE"):
            reply = caller.at(path).send(method, b"{}" if method == "POST" else None)
            assert reply.status == 401
            assert reply.headers["www-authenticate"].startswith("Bearer")
            assert TOKEN not in reply.body.decode()
    assert TOKEN not in locked.said()


def test_a_token_file_that_others_can_read(tmp_path: Path, environment: dict[str, str]) -> None:
    token = tmp_path / "token"
    token.write_text(TOKEN)
    token.chmod(0o640)
    arguments = ("--http", "127.0.0.1:0", "--token-file", str(token))
    told = refusal(*arguments, cwd=tmp_path, environment=environment)
    assert f"can be read by others; run `chmod 600 {token}`" in told
    assert TOKEN not in told


# --- TLS, and addresses that others reach


def test_https(tmp_path: Path, environment: dict[str, str], papers: Papers) -> None:
    with HttpServer(*papers.tls(), cwd=tmp_path, environment=environment) as server:
        assert server.url.startswith("https://127.0.0.1:")
        caller = Caller(server, tls=papers.trust())
        assert statuses(caller, {}) == [200]
        with pytest.raises(ssl.SSLCertVerificationError):
            statuses(Caller(server, tls=ssl.create_default_context()), {})
        with pytest.raises(RemoteDisconnected):
            statuses(Caller(server), {})
        assert statuses(caller, {}) == [200]
        assert server.stop() == 0


def test_others_are_served_with_tls_and_token_only(
    tmp_path: Path, environment: dict[str, str], papers: Papers
) -> None:
    token = ("--token-file", str(papers.token))
    for arguments in ((), token, papers.tls()):
        told = refusal("--http", "0.0.0.0:0", *arguments, cwd=tmp_path, environment=environment)
        assert "callers need TLS and a token" in told


def test_others_with_tls_and_token(
    tmp_path: Path, environment: dict[str, str], papers: Papers
) -> None:
    arguments = ("--http", "0.0.0.0:0", "--token-file", str(papers.token), *papers.tls())
    allowed = ("--allow-host", "127.0.0.1:*")
    with HttpServer(*arguments, *allowed, cwd=tmp_path, environment=environment) as server:
        server.host = "127.0.0.1"
        caller = Caller(server, tls=papers.trust())
        assert statuses(caller, {}, {"Authorization": f"Bearer {TOKEN}"}) == [401, 200]


def test_a_certificate_that_is_none(
    tmp_path: Path, environment: dict[str, str], papers: Papers
) -> None:
    def refused(certificate: Path, key: Path) -> str:
        tls = ("--tls-certificate", str(certificate), "--tls-key", str(key))
        arguments = ("--http", "127.0.0.1:0", *tls)
        return refusal(*arguments, cwd=tmp_path, environment=environment)

    other = ec.generate_private_key(ec.SECP256R1())
    for name, encryption in (
        ("other.pem", serialization.NoEncryption()),
        ("sealed.pem", serialization.BestAvailableEncryption(b"secret")),
    ):
        kind = serialization.PrivateFormat.PKCS8
        content = other.private_bytes(serialization.Encoding.PEM, kind, encryption)
        (tmp_path / name).write_bytes(content)
        assert "cannot be used" in refused(papers.certificate, tmp_path / name)
    assert "cannot be used" in refused(papers.token, papers.key)
    assert "cannot be used" in refused(tmp_path / "none.pem", papers.key)


# --- What cannot be served


def test_a_port_in_use(tmp_path: Path, environment: dict[str, str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        told = refusal("--http", address, cwd=tmp_path, environment=environment)
    assert f"{address} cannot be served" in told
    assert "choose another address or port" in told
