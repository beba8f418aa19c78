"""Arguments and environment of the front."""

from __future__ import annotations

import pytest

from muniment.bridge import options
from muniment.bridge.options import UsageError, read_options
from muniment.kit import paths


def test_the_homes_variable_has_one_name() -> None:
    assert options.HOME_VARIABLE == paths.HOME_VARIABLE


@pytest.mark.parametrize(
    ("arguments", "environment", "profile", "names"),
    [
        ([], {}, "context", "reference"),
        (["--names", "safe"], {}, "context", "safe"),
        (["--profile", "all"], {}, "all", "safe"),
        (["--profile", "vault"], {}, "vault", "safe"),
        ([], {"MUNIMENT_PROFILE": "vault"}, "vault", "safe"),
        (["--profile=core", "--names=safe"], {}, "core", "safe"),
        ([], {"MUNIMENT_PROFILE": "all", "MUNIMENT_NAMES": "safe"}, "all", "safe"),
        ([], {"MUNIMENT_NAMES": "safe"}, "context", "safe"),
        ([], {"MUNIMENT_PROFILE": "", "MUNIMENT_NAMES": ""}, "context", "reference"),
        (["--profile=context"], {"MUNIMENT_PROFILE": "all"}, "context", "reference"),
        (["--profile=core", "--profile=all"], {}, "all", "safe"),
    ],
)
def test_choices(
    arguments: list[str], environment: dict[str, str], profile: str, names: str
) -> None:
    read = read_options(arguments, environment)
    assert (read.profile, read.names, read.warnings) == (profile, names, [])


@pytest.mark.parametrize(
    ("environment", "mentions"),
    [
        ({"MUNIMENT_PROFILE": "volt"}, "MUNIMENT_PROFILE=volt"),
        ({"MUNIMENT_NAMES": "dotted"}, "MUNIMENT_NAMES=dotted"),
        ({"MUNIMENT_PROFILE": "core", "MUNIMENT_NAMES": "reference"}, "choose safe"),
    ],
)
def test_a_bad_environment_is_a_warning(environment: dict[str, str], mentions: str) -> None:
    (warning,) = read_options([], environment).warnings
    assert mentions in warning


@pytest.mark.parametrize(
    ("arguments", "mentions"),
    [
        (["--profile", "volt"], "volt does not exist; choose context, vault, core or all"),
        (["--names", "dotted"], "choose reference or safe"),
        (["--profile"], "--profile needs a value"),
        (["--home="], "--home needs a value"),
        (["--home", "--names"], "--home needs a value"),
        (["--profile", "all", "--names", "reference"], "goes with --profile context, not all"),
        (["--profile", "vault", "--names", "reference"], "goes with --profile context, not vault"),
        (["--verbose"], "unknown argument --verbose"),
        (["serve"], "unknown argument serve"),
    ],
)
def test_bad_arguments_are_refused_in_one_line(arguments: list[str], mentions: str) -> None:
    with pytest.raises(UsageError, match=mentions) as refused:
        read_options(arguments, {})
    assert "\n" not in str(refused.value)


def test_the_rest() -> None:
    assert read_options(["--home", "/x"], {}).home == "/x"
    assert read_options(["--profile", "core", "--help", "--nonsense"], {}).show == "help"
    assert read_options(["--version"], {"MUNIMENT_PROFILE": "?"}).show == "version"
    for flag in ("--profile", "--names", "--home", "--version", "--help"):
        assert flag in options.HELP


# --- HTTP


def test_http_has_defaults() -> None:
    read = read_options(["--http", "127.0.0.1:8808"], {"MUNIMENT_PROFILE": "nonsense"})
    http = read.http
    assert http is not None
    assert (http.host, http.port) == ("127.0.0.1", 8808)
    assert (http.token_file, http.certificate, http.key, http.project) == (None,) * 4
    assert (http.allowed_hosts, http.allowed_origins) == ((), ())
    assert read.warnings == []


def test_without_http_there_is_none() -> None:
    assert read_options([], {}).http is None


@pytest.mark.parametrize(
    ("address", "host", "port"),
    [
        ("127.0.0.1:0", "127.0.0.1", 0),
        ("localhost:65535", "localhost", 65535),
        ("[::1]:80", "::1", 80),
        ("::1:80", "::1", 80),
        ("box.example:8443", "box.example", 8443),
    ],
)
def test_addresses(address: str, host: str, port: int) -> None:
    http = read_options([f"--http={address}"], {}).http
    assert http is not None
    assert (http.host, http.port) == (host, port)


def test_everything_that_http_takes() -> None:
    http = read_options(
        [
            *("--http", "0.0.0.0:443", "--home", "/h", "--project", "/p"),
            *("--token-file", "/t", "--tls-certificate", "/c", "--tls-key", "/k"),
            *("--allow-host", "a:1", "--allow-host=b:2", "--allow-origin", "https://c"),
        ],
        {},
    ).http
    assert http is not None
    assert (http.token_file, http.certificate, http.key, http.project) == ("/t", "/c", "/k", "/p")
    assert http.allowed_hosts == ("a:1", "b:2")
    assert http.allowed_origins == ("https://c",)


@pytest.mark.parametrize(
    "address",
    ["8808", ":8808", "127.0.0.1", "127.0.0.1:", "127.0.0.1:http", "h:65536", "h:-1", "h:²"],
)
def test_what_is_no_address(address: str) -> None:
    with pytest.raises(UsageError, match=r"is no HOST:PORT, such as 127\.0\.0\.1:8808"):
        read_options([f"--http={address}"], {})


@pytest.mark.parametrize(
    ("arguments", "mentions"),
    [
        (["--http"], "--http needs a value"),
        (["--http", "h:1", "--profile", "core"], "--profile goes with standard input"),
        (["--http", "h:1", "--names", "safe"], "--names goes with standard input"),
        (["--http", "h:1", "--tls-key", "/k"], "--tls-certificate and --tls-key go together"),
        (["--http", "h:1", "--tls-certificate", "/c"], "go together"),
        (["--token-file", "/t"], "--token-file goes with --http HOST:PORT"),
        (["--tls-key", "/k"], "--tls-key goes with --http"),
        (["--project", "/p"], "--project goes with --http"),
        (["--allow-host", "h:1"], "--allow-host goes with --http"),
        (["--allow-origin", "https://h"], "--allow-origin goes with --http"),
    ],
)
def test_what_does_not_go_together(arguments: list[str], mentions: str) -> None:
    with pytest.raises(UsageError, match=mentions):
        read_options(arguments, {})


def test_help_names_what_http_takes() -> None:
    for flag in (
        *("--http", "--token-file", "--tls-certificate", "--tls-key"),
        *("--allow-host", "--allow-origin", "--project"),
    ):
        assert flag in options.HELP
