"""For all tests: a home's key never stays with the user's own."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.homes import KEYS

os.environ.update(KEYS)


@pytest.fixture(scope="session", autouse=True)
def _users_keys_stay_as_they_are() -> Iterator[None]:
    before = _users_keys()
    yield
    assert _users_keys() <= before, "a test kept a key in the user's own folder"


def _users_keys() -> set[Path]:
    user = Path(pwd.getpwuid(os.getuid()).pw_dir)
    folders = (".config/muniment/keys", "Library/Application Support/muniment-keys")
    return {path for folder in folders for path in (user / folder).glob("*.key")}
