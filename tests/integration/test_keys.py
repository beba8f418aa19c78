"""`muniment key`: a home is sealed, gets another key, and says which it has."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from muniment.kit.home_key import HomeKey, KeyShelf
from muniment.kit.randomness import SystemRandomness
from muniment.kit.store.schemas import peek_schema
from tests.integration.house import House, Ran, a_house

pytestmark = pytest.mark.timeout(240)

TEXT = "the staging port is 9090"


@pytest.fixture
def house() -> Iterator[House]:
    with a_house() as house:
        yield house


@pytest.fixture
def used_house(house: House) -> House:
    """One that remembers something."""
    house.must("up")
    house.must("commit", "--role", "user", TEXT)
    return house


def key_texts(house: House) -> list[str]:
    return [json.loads(path.read_text())["key"] for path in house.key_folder.glob("*.key")]


def runs(house: House) -> bool:
    state: str = house.service("memory")["state"]
    return state == "RUNNING"


def is_sealed(house: House) -> bool:
    stored = peek_schema(house.home.data("memory") / "store")
    assert stored is not None
    return stored.sealed


def test_a_home_is_sealed_and_gets_another_key(house: House) -> None:
    house.must("up")
    committed = house.must("commit", "--role", "user", TEXT)
    first = house.must("key", "show-id")
    assert not first["sealed"]
    assert Path(first["where"]).parent == house.key_folder
    logs = house.home.logs / "memory.log"
    assert logs.stat().st_size

    sealed = house.must("key", "create")
    assert sealed["sealed"]
    stores = [str(house.home.data(name) / "store") for name in ("memory", "slots", "code")]
    assert sealed["stores"] == stores
    assert sealed["in_the_clear"] == []
    assert is_sealed(house)
    assert runs(house)
    assert not list(house.home.data("memory").glob("lexical*"))
    assert house.recall("staging")[0]["id"] == committed["episode_id"]

    rotated = house.must("key", "rotate")
    assert rotated["sealed"]
    assert len({first["key_id"], sealed["key_id"], rotated["key_id"]}) == 3
    assert house.must("key", "show-id")["key_id"] == rotated["key_id"]
    assert house.recall("staging")[0]["id"] == committed["episode_id"]
    assert house.must("verify-store")["findings"] == []
    assert len(key_texts(house)) == 3


def test_no_command_shows_a_key(house: House) -> None:
    house.must("down")
    ran: list[Ran] = []
    for words in (("create",), ("rotate",), ("show-id",), ("create",)):
        ran += [house.run("key", *words), house.run("key", *words, "--json")]
    texts = key_texts(house)
    assert len(texts) >= 3
    for one in ran:
        shown = one.out.decode() + one.err
        assert not any(text in shown for text in texts)
    where = house.must("key", "show-id")["where"]
    assert where in ran[0].out.decode()
    assert ran[-1].code == 1
    assert "SEALED_ALREADY" in ran[-1].err


def test_a_key_that_is_gone_is_told_from_none(house: House) -> None:
    house.must("up")
    house.must("down")
    shutil.move(house.key_folder, house.project / "away")
    for words in (("show-id",), ("rotate",), ("create",)):
        ran = house.run("key", *words, "--json")
        assert ran.code == 1
        assert json.loads(ran.err)["error"]["reason"] == "KEY_MISSING"
    shutil.move(house.project / "away", house.key_folder)
    assert not house.must("key", "show-id")["sealed"]


def test_a_home_without_data_just_gets_one(house: House) -> None:
    missing = house.run("key", "show-id", "--json")
    assert missing.code == 1
    assert json.loads(missing.err)["error"]["reason"] == "KEY_UNKNOWN"
    made = house.must("key", "create")
    assert made["sealed"]
    assert made["stores"] == []
    assert house.must("ps")[0]["state"] == "STOPPED"
    house.must("up")
    house.must("commit", "--role", "user", TEXT)
    assert is_sealed(house)
    house.must("down")
    assert TEXT.encode() not in (house.home.data("memory") / "store" / "data.mdb").read_bytes()


def test_an_interrupted_change_is_finished(used_house: House) -> None:
    house = used_house
    house.must("down")
    shelf = KeyShelf(house.home, "file", str(house.key_folder))
    following = HomeKey.make(SystemRandomness(), sealed=True)
    shelf.prepare(following, SystemRandomness())
    assert house.must("key", "show-id")["unfinished_change"]
    assert house.recall("staging")
    finished = house.must("key", "rotate")
    assert finished["finished_earlier_change"]
    assert finished["key_id"] == following.key_id
    assert is_sealed(house)
    assert house.recall("staging")


def test_an_interrupted_plain_change_does_not_keep_a_home_from_being_sealed(
    used_house: House,
) -> None:
    house = used_house
    house.must("down")
    shelf = KeyShelf(house.home, "file", str(house.key_folder))
    following = HomeKey.make(SystemRandomness(), sealed=False)
    shelf.prepare(following, SystemRandomness())
    sealed = house.must("key", "create")
    assert sealed["sealed"]
    assert sealed["finished_earlier_change"]
    assert sealed["key_id"] != following.key_id
    assert is_sealed(house)
    assert house.recall("staging")


def test_a_store_in_doubt_keeps_its_key_and_its_services(used_house: House) -> None:
    house = used_house
    house.must("down")
    data = house.home.data("memory") / "store" / "data.mdb"
    data.write_bytes(data.read_bytes().replace(TEXT.encode(), TEXT.upper().encode()))
    house.must("up")
    before = house.must("key", "show-id")
    refused = house.run("key", "rotate", "--json")
    assert refused.code == 1
    assert json.loads(refused.err)["error"]["fix"] is not None
    assert house.must("key", "show-id") == before
    assert runs(house)


def test_without_its_key_a_store_stays_closed(used_house: House) -> None:
    house = used_house
    house.must("down")
    (key,) = house.key_folder.glob("*.key")
    away = key.rename(house.project / "key")
    refused = house.run("up")
    assert refused.code == 1
    assert str(key) in refused.err
    away.rename(key)
    house.must("up")
    assert house.recall("staging")
