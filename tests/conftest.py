"""For all tests: a home's key never stays with the user's own."""

from __future__ import annotations

import os
import pwd
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from tests.support.homes import KEYS, a_folder

if TYPE_CHECKING:
    from tests.support.llama.models import ModelFiles
    from tests.support.llama.process import StartLlama
    from tests.support.slots_desk import Desk, SharedDesk
    from tests.support.slots_process import SlotsHome

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


@pytest.fixture(scope="session")
def model_files(tmp_path_factory: pytest.TempPathFactory) -> ModelFiles:
    """Files of tiny models."""
    # What makes them takes half a second to import, and most tests need none.
    from tests.support.llama.models import ModelFiles

    return ModelFiles(tmp_path_factory.mktemp("models"))


@pytest.fixture
def start_llama(model_files: ModelFiles) -> Iterator[StartLlama]:
    """Starts llama-servers, which end with the test."""
    from tests.support.llama.process import StartLlama

    with ExitStack() as stack:
        yield StartLlama(stack, model_files, stack.enter_context(a_folder()))


@pytest.fixture
def slots_home() -> Iterator[SlotsHome]:
    """A new home."""
    from tests.support.slots_process import a_slots_home

    with a_slots_home() as home:
        yield home


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def _shared_desk() -> AsyncIterator[SharedDesk]:
    from tests.support.slots_desk import a_shared_desk

    async with a_shared_desk() as shared:
        yield shared


@pytest.fixture
def desk(_shared_desk: SharedDesk, start_llama: StartLlama) -> Iterator[Desk]:
    """A slots service of the module, with no inference server yet."""
    with _shared_desk.used_by(start_llama) as desk:
        yield desk
