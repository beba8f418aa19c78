"""What one front is told by its harness: arguments first, then environment, then defaults.

Hand-made, since argparse costs as much as the rest of the start, and answers with two lines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

__all__ = ["HELP", "HOME_VARIABLE", "NAMES", "PROFILES", "Options", "UsageError", "read_options"]

PROFILES = ("context", "core", "all")
NAMES = ("reference", "safe")

# Equal to kit.paths.HOME_VARIABLE, whose module costs the front 30 ms; a test compares the two.
HOME_VARIABLE = "MUNIMENT_HOME"
_PROFILE_VARIABLE = "MUNIMENT_PROFILE"
_NAMES_VARIABLE = "MUNIMENT_NAMES"

HELP = """\
usage: muniment-mcp [--profile context|core|all] [--names reference|safe] [--home DIR]

Serves Muniment, the memory of an inference host, to an MCP harness on standard input and output.

  --profile NAME   which tools are listed: context (default), core (few), all
  --names STYLE    how they are spelt: reference (default for context, has dots),
                   safe (letters, digits and underscores; the only one for core and all)
  --home DIR       data home (default: MUNIMENT_HOME, else the platform's data folder)
  --version        print the version
  --help           print this

MUNIMENT_PROFILE and MUNIMENT_NAMES set the same defaults for a host that passes no arguments.
"""

_VALUED = ("--profile", "--names", "--home")


class UsageError(Exception):
    """The arguments cannot be followed; the text is one line for the person who wrote them."""


class Options:
    """What the front was told."""

    __slots__ = ("home", "names", "profile", "show", "warnings")

    def __init__(self) -> None:
        self.profile = PROFILES[0]
        self.names = NAMES[0]
        self.home: str | None = None
        """Where given as an argument."""
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
    options.home = given.get("--home")
    options.profile = _choose(
        given.get("--profile"), environment, _PROFILE_VARIABLE, PROFILES, options
    )
    spellings = NAMES if options.profile == "context" else NAMES[1:]
    if given.get("--names") == "reference" and "reference" not in spellings:
        raise UsageError(f"--names reference goes with --profile context, not {options.profile}")
    options.names = _choose(given.get("--names"), environment, _NAMES_VARIABLE, spellings, options)
    return options


def _given(arguments: Sequence[str], options: Options) -> dict[str, str]:
    given: dict[str, str] = {}
    rest = iter(arguments)
    for argument in rest:
        name, has_value, value = argument.partition("=")
        if argument in ("--help", "-h", "--version"):
            options.show = "version" if argument == "--version" else "help"
            break
        if name not in _VALUED:
            raise UsageError(f"unknown argument {argument}; see muniment-mcp --help")
        if not has_value:
            value = next(rest, "")
        if not value or value.startswith("--"):
            raise UsageError(f"{name} needs a value")
        choices = {"--profile": PROFILES, "--names": NAMES}.get(name)
        if choices is not None and value not in choices:
            raise UsageError(f"{name} {value} does not exist; choose {_or(choices)}")
        given[name] = value
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
