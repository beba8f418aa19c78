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
        ({"MUNIMENT_PROFILE": "vault"}, "MUNIMENT_PROFILE=vault"),
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
        (["--profile", "vault"], "vault does not exist; choose context, core or all"),
        (["--names", "dotted"], "choose reference or safe"),
        (["--profile"], "--profile needs a value"),
        (["--home="], "--home needs a value"),
        (["--home", "--names"], "--home needs a value"),
        (["--profile", "all", "--names", "reference"], "goes with --profile context, not all"),
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
