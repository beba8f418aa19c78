"""What one front is told by its harness: arguments first, then environment, then defaults.

Hand-made, since argparse costs as much as the rest of the start, and answers with two lines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

__all__ = [
    "HELP",
    "HOME_VARIABLE",
    "NAMES",
    "PROFILES",
    "HttpOptions",
    "Options",
    "UsageError",
    "read_options",
]

PROFILES = ("context", "vault", "core", "all")
NAMES = ("reference", "safe")

# Equal to kit.paths.HOME_VARIABLE, whose module costs the front 30 ms; a test compares the two.
HOME_VARIABLE = "MUNIMENT_HOME"
_PROFILE_VARIABLE = "MUNIMENT_PROFILE"
_NAMES_VARIABLE = "MUNIMENT_NAMES"

HELP = """\
usage: muniment-mcp [--profile context|vault|core|all] [--names reference|safe] [--home DIR]
       muniment-mcp --http HOST:PORT [--token-file FILE] [--tls-certificate FILE --tls-key FILE]
                    [--allow-host HOST:PORT] [--allow-origin URL] [--project DIR] [--home DIR]

Serves Muniment, the memory of an inference host, to an MCP harness on standard input and output,
or over Streamable HTTP.

  --profile NAME   which tools are listed: context (default), vault (records), core (few), all
  --names STYLE    how they are spelt: reference (default for context, has dots),
                   safe (letters, digits and underscores; the only one for the others)
  --home DIR       data home (default: MUNIMENT_HOME, else the platform's data folder)
  --http HOST:PORT serve http://HOST:PORT/mcp (profile context), and /mcp/safe, /mcp/vault,
                   /mcp/core, /mcp/all; a caller names its project with ?project=DIR, else it is
                   --project DIR, else the folder that this was started in
  --token-file F   let only those call who send what F holds as `Authorization: Bearer`
  --tls-certificate F, --tls-key F
                   speak HTTPS; off loopback it takes both, and a token
  --allow-host H, --allow-origin U
                   take requests for this Host, from this Origin, too; may be repeated
  --version        print the version
  --help           print this

MUNIMENT_PROFILE and MUNIMENT_NAMES set the same defaults for a host that passes no arguments.
"""

_VALUED = ("--profile", "--names", "--home")
_REPEATED = ("--allow-host", "--allow-origin")
_HTTP = ("--token-file", "--tls-certificate", "--tls-key", "--project", *_REPEATED)


_LARGEST_PORT = 65535


class UsageError(Exception):
    """The arguments cannot be followed; the text is one line for the person who wrote them."""


class HttpOptions:
    """Where and to whom HTTP is served."""

    __slots__ = (
        "allowed_hosts",
        "allowed_origins",
        "certificate",
        "host",
        "key",
        "port",
        "project",
        "token_file",
    )

    def __init__(self, host: str, port: int) -> None:
        self.host = host
        self.port = port
        self.token_file: str | None = None
        self.certificate: str | None = None
        self.key: str | None = None
        self.project: str | None = None
        self.allowed_hosts: tuple[str, ...] = ()
        """Besides the server's own."""
        self.allowed_origins: tuple[str, ...] = ()


class Options:
    """What the front was told."""

    __slots__ = ("home", "http", "names", "profile", "show", "warnings")

    def __init__(self) -> None:
        self.profile = PROFILES[0]
        self.names = NAMES[0]
        self.home: str | None = None
        """Where given as an argument."""
        self.http: HttpOptions | None = None
        """Where HTTP is to be served, instead of standard input and output."""
        self.show: str | None = None
        """`help` or `version`, instead of serving."""
        self.warnings: list[str] = []
        """One line for each value of the environment that could not be used."""


def read_options(arguments: Sequence[str], environment: Mapping[str, str]) -> Options:
    """Read arguments and environment.

    Raises:
        UsageError: An argument is unknown, has no value or an impossible one.
    """
    options = Options()
    given = _given(arguments, options)
    if options.show is not None:
        return options
    options.home = _one(given, "--home")
    options.http = _http(given)
    if options.http is not None:
        return options
    options.profile = _choose(
        _one(given, "--profile"), environment, _PROFILE_VARIABLE, PROFILES, options
    )
    spellings = NAMES if options.profile == "context" else NAMES[1:]
    if _one(given, "--names") == "reference" and "reference" not in spellings:
        raise UsageError(f"--names reference goes with --profile context, not {options.profile}")
    options.names = _choose(
        _one(given, "--names"), environment, _NAMES_VARIABLE, spellings, options
    )
    return options


def _one(given: Mapping[str, Sequence[str]], name: str) -> str | None:
    """The value that was given last."""
    return given[name][-1] if name in given else None


def _http(given: Mapping[str, Sequence[str]]) -> HttpOptions | None:
    address = _one(given, "--http")
    if address is None:
        alone = next((name for name in _HTTP if name in given), None)
        if alone is not None:
            raise UsageError(f"{alone} goes with --http HOST:PORT")
        return None
    for name in ("--profile", "--names"):
        if name in given:
            raise UsageError(f"{name} goes with standard input; over HTTP the path says it")
    host, _, port = address.rpartition(":")
    if not host or not (port.isascii() and port.isdigit()) or int(port) > _LARGEST_PORT:
        raise UsageError(f"--http {address} is no HOST:PORT, such as 127.0.0.1:8808")
    http = HttpOptions(host.strip("[]"), int(port))
    http.token_file = _one(given, "--token-file")
    http.certificate, http.key = _one(given, "--tls-certificate"), _one(given, "--tls-key")
    if (http.certificate is None) != (http.key is None):
        raise UsageError("--tls-certificate and --tls-key go together")
    http.project = _one(given, "--project")
    http.allowed_hosts = tuple(given.get("--allow-host", ()))
    http.allowed_origins = tuple(given.get("--allow-origin", ()))
    return http


def _given(arguments: Sequence[str], options: Options) -> dict[str, list[str]]:
    given: dict[str, list[str]] = {}
    rest = iter(arguments)
    for argument in rest:
        name, has_value, value = argument.partition("=")
        if argument in ("--help", "-h", "--version"):
            options.show = "version" if argument == "--version" else "help"
            break
        if name not in (*_VALUED, "--http", *_HTTP):
            raise UsageError(f"unknown argument {argument}; see muniment-mcp --help")
        if not has_value:
            value = next(rest, "")
        if not value or value.startswith("--"):
            raise UsageError(f"{name} needs a value")
        choices = {"--profile": PROFILES, "--names": NAMES}.get(name)
        if choices is not None and value not in choices:
            raise UsageError(f"{name} {value} does not exist; choose {_or(choices)}")
        given.setdefault(name, []).append(value)
    return given


def _choose(
    given: str | None,
    environment: Mapping[str, str],
    variable: str,
    choices: Sequence[str],
    options: Options,
) -> str:
    if given is not None:
        return given
    found = environment.get(variable)
    if not found:
        return choices[0]
    if found not in choices:
        options.warnings.append(
            f"{variable}={found} is ignored: choose {_or(choices)}; {choices[0]} is used"
        )
        return choices[0]
    return found


def _or(choices: Sequence[str]) -> str:
    return " or ".join([", ".join(choices[:-1]), choices[-1]] if choices[1:] else choices)
