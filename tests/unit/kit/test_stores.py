"""One process at a time has a home's stores."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from muniment.kit.errors import UnavailableError
from muniment.kit.paths import Home
from muniment.kit.stores import HomeStore, hold_stores
from tests.support.homes import clean_environment
from tests.waiting import until

ONE = HomeStore("one", version=3, oldest_version=2)
TWO = HomeStore("two", version=1, oldest_version=1)

HOLDS = """\
import sys
from pathlib import Path

from muniment.kit.paths import Home
from muniment.kit.stores import HomeStore, hold_stores

home = Home(Path(sys.argv[1]))
with hold_stores(home, [HomeStore("one", version=3, oldest_version=2)]):
    (home.path / "holds").touch()
    sys.stdin.read()
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path.resolve() / "home")


def demand_refused(home: Home, *stores: HomeStore) -> None:
    with pytest.raises(UnavailableError) as refused, hold_stores(home, stores):
        pass
    assert refused.value.reason == "STORE_IN_USE"
    assert str(home.data("one")) in refused.value.message


def test_a_store_is_held_by_one_alone(home: Home) -> None:
    with hold_stores(home, [ONE]):
        demand_refused(home, ONE)
        with hold_stores(home, [TWO]):
            pass
    with hold_stores(home, [ONE]):
        pass


def test_who_does_not_get_all_keeps_none(home: Home) -> None:
    with hold_stores(home, [ONE]):
        demand_refused(home, TWO, ONE)
        with hold_stores(home, [TWO]):
            pass


def test_a_process_holds_it_until_it_dies(home: Home) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(home.path)],
        env=clean_environment(),
        stdin=subprocess.PIPE,
    ) as process:
        try:
            until((home.path / "holds").exists, "the other process holds the store")
            demand_refused(home, ONE)
        finally:
            process.kill()
    with hold_stores(home, [ONE]):
        pass


def test_it_is_private(home: Home) -> None:
    with hold_stores(home, [ONE]):
        assert home.data("one").stat().st_mode & 0o777 == 0o700
        assert {one.stat().st_mode & 0o777 for one in home.data("one").iterdir()} == {0o600}


def test_versions_that_a_program_reads() -> None:
    assert [ONE.reads(version) for version in range(1, 5)] == [False, True, True, False]
