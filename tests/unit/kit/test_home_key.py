"""A home's key is kept outside the home, and there are two while it is being changed."""

from __future__ import annotations

import stat
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked

from muniment.kit.errors import PreconditionError
from muniment.kit.home_key import HomeKey, KeyShelf
from muniment.kit.paths import Home
from muniment.kit.randomness import Randomness, SystemRandomness
from muniment.v1 import store_pb2
from tests.support.seams import SeededRandomness


class MemoryKeyring(KeyringBackend):
    """Keeps secrets in this process."""

    priority = 1

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.kept: dict[tuple[str, str], str] = {}
        self.locked = False

    def get_password(self, service: str, username: str) -> str | None:
        self._check()
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self._check()
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        self._check()
        del self.kept[service, username]

    def _check(self) -> None:
        if self.locked:
            raise KeyringLocked("it is locked")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path.resolve() / "home")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "keys"


@pytest.fixture
def vault() -> Iterator[MemoryKeyring]:
    before, vault = keyring.get_keyring(), MemoryKeyring()
    keyring.set_keyring(vault)
    yield vault
    keyring.set_keyring(before)


@pytest.fixture(params=["file", "keyring"])
def shelf(
    request: pytest.FixtureRequest, home: Home, folder: Path, vault: MemoryKeyring
) -> KeyShelf:
    return KeyShelf(home, request.param, str(folder))


@pytest.fixture
def randomness() -> Randomness:
    return SeededRandomness()


def under(key: HomeKey) -> store_pb2.StoredSchema:
    return store_pb2.StoredSchema(version=2, key_id=key.key_id, sealed=key.sealed)


def test_a_new_home_gets_a_key_and_finds_it_again(shelf: KeyShelf, randomness: Randomness) -> None:
    assert shelf.load() is None
    made = shelf.load_or_make(randomness, None)
    assert not made.sealed
    assert shelf.load() == made
    assert shelf.load_or_make(randomness, under(made)) == made
    assert shelf.load_or_make(randomness, None) == made


def test_a_store_without_a_key_is_no_reason_to_miss_one(
    shelf: KeyShelf, randomness: Randomness
) -> None:
    made = shelf.load_or_make(randomness, store_pb2.StoredSchema(version=1))
    assert shelf.load() == made


def test_data_without_their_key_are_told(shelf: KeyShelf, randomness: Randomness) -> None:
    other = HomeKey.make(randomness, sealed=True)
    with pytest.raises(PreconditionError) as refused:
        shelf.load_or_make(randomness, under(other))
    assert refused.value.reason == "KEY_MISSING"
    assert shelf.load() is None


def test_data_without_the_homes_id_are_told(
    shelf: KeyShelf, home: Home, randomness: Randomness
) -> None:
    made = shelf.load_or_make(randomness, None)
    (home.path / "home.id").unlink()
    with pytest.raises(PreconditionError) as refused:
        shelf.load_or_make(randomness, under(made))
    assert refused.value.reason == "KEY_MISSING"
    assert str(home.path / "home.id") in refused.value.message
    assert not (home.path / "home.id").exists()


def test_a_home_without_an_id_is_told_the_place_of_keys(
    shelf: KeyShelf, folder: Path, randomness: Randomness
) -> None:
    assert shelf.where in (str(folder), "the OS keyring")
    shelf.load_or_make(randomness, None)
    assert shelf.where not in (str(folder), "the OS keyring")


def test_while_it_changes_each_key_opens_its_own_store(
    shelf: KeyShelf, randomness: Randomness
) -> None:
    first = shelf.load_or_make(randomness, None)
    second = HomeKey.make(randomness, sealed=True)
    shelf.prepare(second, randomness)
    assert shelf.load() == first
    assert shelf.load_next() == second
    assert shelf.load_for(under(first)) == first
    assert shelf.load_for(under(second)) == second
    shelf.promote(randomness)
    assert shelf.load() == second
    assert shelf.load_next() is None
    assert shelf.load_for(under(first)) == second
    shelf.promote(randomness)
    assert shelf.load() == second
    # The earlier one still opens backups, and no store in use.
    assert shelf.find(under(first)) == first
    assert shelf.find(under(second)) == second


def test_a_home_whose_key_is_elsewhere_gets_no_other(
    home: Home, tmp_path: Path, randomness: Randomness
) -> None:
    sealed = HomeKey.make(randomness, sealed=True)
    KeyShelf(home, "file", str(tmp_path / "stick")).keep(sealed, randomness)
    elsewhere = KeyShelf(home, "file", str(tmp_path / "folder"))
    with pytest.raises(PreconditionError) as refused:
        elsewhere.load_or_make(randomness, None)
    assert refused.value.reason == "KEY_MISSING"
    assert not list(tmp_path.glob("folder/*"))


def test_a_folder_that_is_there_is_left_as_it_is(
    home: Home, tmp_path: Path, randomness: Randomness
) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o755)
    KeyShelf(home, "file", str(folder)).load_or_make(randomness, None)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o755
    (file,) = folder.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_keys_are_apart_from_the_home_and_private(
    home: Home, folder: Path, randomness: Randomness
) -> None:
    shelf = KeyShelf(home, "file", str(folder))
    made = shelf.load_or_make(randomness, None)
    (file,) = folder.iterdir()
    assert shelf.where == str(file)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    written = [path for path in home.path.rglob("*") if path.is_file()]
    assert {path.name for path in written} == {"home.id", "key.lock"}
    assert not any(made.key in path.read_bytes() for path in written)


def test_a_moved_home_keeps_its_key(home: Home, folder: Path, randomness: Randomness) -> None:
    made = KeyShelf(home, "file", str(folder)).load_or_make(randomness, None)
    moved = Home(home.path.with_name("moved"))
    home.path.rename(moved.path)
    assert KeyShelf(moved, "file", str(folder)).load() == made


@pytest.mark.parametrize("inside", ["", "keys", "a/b"])
def test_no_folder_in_the_home_will_do(home: Home, inside: str) -> None:
    with pytest.raises(PreconditionError) as refused:
        KeyShelf(home, "file", str(home.path / inside))
    assert refused.value.field == "key_folder"


def test_a_folder_that_depends_on_where_one_stands_will_not_do(home: Home) -> None:
    with pytest.raises(PreconditionError) as refused:
        KeyShelf(home, "file", "keys")
    assert refused.value.field == "key_folder"


@pytest.mark.parametrize("text", ["", "{}", '{"key": "AAAA", "sealed": true}', "[1]"])
def test_a_damaged_key_is_told_without_quoting_it(
    home: Home, folder: Path, randomness: Randomness, text: str
) -> None:
    shelf = KeyShelf(home, "file", str(folder))
    shelf.load_or_make(randomness, None)
    Path(shelf.where).write_text(text)
    with pytest.raises(PreconditionError) as refused:
        shelf.load()
    assert refused.value.reason == "KEY_DAMAGED"
    assert refused.value.__cause__ is None
    assert shelf.where in str(refused.value)


def test_a_damaged_id_is_told(home: Home, folder: Path, randomness: Randomness) -> None:
    shelf = KeyShelf(home, "file", str(folder))
    shelf.load_or_make(randomness, None)
    (home.path / "home.id").write_text("../../elsewhere")
    with pytest.raises(PreconditionError) as refused:
        shelf.load()
    assert refused.value.reason == "KEY_UNREADABLE"


def test_no_key_is_shown_by_accident(randomness: Randomness) -> None:
    key = HomeKey.make(randomness, sealed=True)
    for shown in (repr(key), repr(key.protection(randomness)), str(key)):
        assert repr(key.key) not in shown
        assert key.key.hex() not in shown


def test_a_locked_keyring_is_told(home: Home, vault: MemoryKeyring, randomness: Randomness) -> None:
    shelf = KeyShelf(home, "keyring", "")
    shelf.load_or_make(randomness, None)
    vault.locked = True
    second = HomeKey.make(randomness, sealed=True)
    for call in (shelf.load, shelf.load_next, lambda: shelf.keep(second, randomness)):
        with pytest.raises(PreconditionError) as refused:
            call()
        assert refused.value.reason == "KEY_UNREADABLE"
        assert "unlock it" in str(refused.value)


def test_the_key_of_a_lost_home_is_found_among_all(
    home: Home, folder: Path, randomness: Randomness
) -> None:
    lost = KeyShelf(Home(home.path.with_name("lost")), "file", str(folder))
    key = HomeKey.make(randomness, sealed=True)
    lost.keep(key, randomness)
    (folder / "broken.key").write_text("not a key")
    shelf = KeyShelf(home, "file", str(folder))
    assert shelf.find(under(key)) == key
    assert shelf.find(under(HomeKey.make(randomness, sealed=True))) is None
    assert shelf.find(store_pb2.StoredSchema(key_id="../lost")) is None


def test_services_that_start_at_once_make_one_key(home: Home, folder: Path) -> None:
    together = threading.Barrier(8)

    def start(seed: int) -> HomeKey:
        own = KeyShelf(home, "file", str(folder))
        together.wait()
        return own.load_or_make(SystemRandomness(), None)

    with ThreadPoolExecutor(8) as services:
        keys = set(services.map(start, range(8)))
    assert keys == {KeyShelf(home, "file", str(folder)).load()}
