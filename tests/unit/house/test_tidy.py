"""The repository keeps its own style. Each rule is shown once what it should find."""

from __future__ import annotations

import re
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.unit.house.findings import EXCEPTIONS, demand_none, not_excused
from tests.unit.house.liveness import unused_modules, unused_names
from tests.unit.house.rules import PYTHON_RULES, TEXT_RULES
from tests.unit.house.source import (
    ROOT,
    SOURCE_ROOTS,
    TextFile,
    parse,
    python_modules,
    text_files,
    tracked_paths,
)

SAMPLE = "services/muniment/memory/sample.py"

BAD_TEXTS = {
    "white space": ["a \n", "a\tb\n", "a\r\n", "a", "a\n\n"],
    "unfinished work": ["# TO" + "DO: later\n"],
    "this machine": ["see https://pypi" + ".org/simple\n", 'open("/' + 'work/main/x")\n'],
}

BAD_CODE = {
    "columns": "x = '" + "a" * 100 + "'\n",
    "docstring": "x = 1\n",
    "long file": "x = 1\n" * 501,
    "long function": "def f():\n" + "    x = 1\n" * 60,
    "clock": "import time\nstart = time.time()\n",
    "randomness": "from uuid import uuid4\nname = uuid4()\n",
    "file writing": "from pathlib import Path\nPath('a').write_text('b')\n",
    "printing": "print('hello')\n",
    "sleeping": "import asyncio\nasync def wait():\n    await asyncio.sleep(0.1)\n",
}


@pytest.mark.parametrize("rule", TEXT_RULES)
def test_text(rule: str) -> None:
    everywhere = rule == "this machine"
    files = [file for file in text_files() if not file.data and (everywhere or not file.generated)]
    findings = [finding for file in files for finding in TEXT_RULES[rule](file)]
    demand_none(not_excused(rule, findings))


@pytest.mark.parametrize("rule", PYTHON_RULES)
def test_python(rule: str) -> None:
    findings = [finding for module in python_modules() for finding in PYTHON_RULES[rule](module)]
    demand_none(not_excused(rule, findings))


@pytest.mark.parametrize("rule", TEXT_RULES)
def test_text_rule_finds_what_it_should(rule: str) -> None:
    for text in BAD_TEXTS[rule]:
        assert list(TEXT_RULES[rule](TextFile("docs/sample.md", text))), text


@pytest.mark.parametrize("rule", PYTHON_RULES)
def test_python_rule_finds_what_it_should(rule: str) -> None:
    path = "tests/unit/test_sample.py" if rule == "sleeping" else SAMPLE
    assert list(PYTHON_RULES[rule](parse(path, BAD_CODE[rule])))


@pytest.mark.parametrize(
    "opens",
    [
        "open('a', 'w')",
        "open('a', mode='ab')",
        "Path('a').open('x')",
        "os.fdopen(3, 'wb')",
        "os.open('a', os.O_RDONLY | os.O_CREAT)",
        "Path('a').touch()",
        "shutil.copy2('a', 'b')",
    ],
)
def test_every_way_to_write_a_file_is_known(opens: str) -> None:
    module = parse(SAMPLE, f"import os, shutil\nfrom pathlib import Path\n{opens}\n")
    assert list(PYTHON_RULES["file writing"](module))


def test_reading_is_no_writing() -> None:
    text = (
        "import os\nopen('a')\nopen('a', 'rb')\nos.open('a', os.O_RDONLY)\n'a'.replace('w', 'x')\n"
    )
    assert list(PYTHON_RULES["file writing"](parse(SAMPLE, text))) == []


def test_no_module_is_dead() -> None:
    demand_none(not_excused("unused module", unused_modules(python_modules())))


def test_no_name_is_dead() -> None:
    demand_none(not_excused("unused name", unused_names(python_modules())))


def test_dead_code_is_found() -> None:
    alive = parse(
        "services/muniment/cli/__main__.py",
        '"""Entry."""\nfrom muniment.kit.used import useful\n\nuseful()\n',
    )
    used = parse(
        "services/muniment/kit/used.py",
        "__all__ = ['spare', 'useful']\n"
        "def useful():\n    return 1\n\n"
        "def spare():\n    return spare()\n",
    )
    dead = parse("services/muniment/kit/dead.py", "UNUSED = 1\n")
    modules = (alive, used, dead)
    assert list(unused_modules(modules)) == ["services/muniment/kit/dead.py:1: nothing imports it"]
    assert list(unused_names(modules)) == [
        "services/muniment/kit/used.py:5: nothing uses spare",
        "services/muniment/kit/dead.py:1: nothing uses UNUSED",
    ]


def test_exceptions_name_known_rules_and_reasons() -> None:
    rules = {*TEXT_RULES, *PYTHON_RULES, "unused module", "unused name"}
    assert set(EXCEPTIONS) <= rules
    assert all(reason for excused in EXCEPTIONS.values() for reason in excused.values())


def test_namespace_roots_stay_open() -> None:
    for root in SOURCE_ROOTS:
        for package in ("", "muniment/", "muniment/v1/"):
            assert f"{root}/{package}__init__.py" not in tracked_paths()


def test_every_room_says_what_it_is_for() -> None:
    rooms = {module.path.rsplit("/", 1)[0] for module in python_modules() if module.in_house}
    silent = (room for room in sorted(rooms) if f"{room}/__init__.py" not in tracked_paths())
    demand_none(f"{room}: no __init__.py that says what the room is for" for room in silent)


def test_lock_is_complete() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = [*project["project"]["dependencies"], *project["dependency-groups"]["dev"]]
    lock = (ROOT / "requirements.lock").read_text()
    pinned = dict(re.findall(r"^([\w.-]+)==([^ \\]+)", lock, re.MULTILINE))
    for requirement in map(Requirement, wanted):
        version = pinned.get(canonicalize_name(requirement.name))
        assert version is not None, f"{requirement} is not in requirements.lock: run `make lock`"
        assert requirement.specifier.contains(version), f"{requirement}: run `make lock`"


def test_lock_pins_everything_by_hash() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    for entry in re.split(r"\n(?=\S)", lock.strip()):
        assert re.match(r"[\w.-]+==\S+( ; [^\n\\]+)? \\\n +--hash=sha256:[0-9a-f]{64}", entry), (
            entry
        )
