"""What the tables of schema version 1 become.

That a whole memory goes forward and back is tested in `tests/integration`, with the program that
wrote it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import lmdb
import pytest
from google.protobuf.message import Message

from muniment.kit.clock import timestamp
from muniment.kit.store import Store, StoreOptions
from muniment.kit.store.keys import KeyPart, pack
from muniment.kit.store.migration import open_store
from muniment.kit.store.tables import REPLIES, REPLY_TIMES
from muniment.memory.migrations import MIGRATIONS
from muniment.memory.schema import EPISODES, PIN_SCOPES, SCHEMA
from muniment.v1 import memory_pb2, store_pb2
from tests.support.seams import FakeClock
from tests.support.stores import QuickDisk, protection

_MAP_BYTES = 16 * 1024**2
_AT = timestamp(FakeClock())

_ROWS: tuple[tuple[str, tuple[KeyPart, ...], Message], ...] = (
    ("meta", ("schema",), store_pb2.StoredSchema(version=1)),
    ("episodes", (1,), memory_pb2.Episode(episode_id="ep_1", seq=1)),
    ("episodes", (7,), memory_pb2.Episode(episode_id="ep_7", seq=7)),
    ("pin_scopes", ("proj_one", "", b"a"), store_pb2.StoredPinRef(pin_id="pin_1")),
    ("pin_scopes", ("proj_one", "monday", b"a"), store_pb2.StoredPinRef(pin_id="pin_2")),
    ("replies", ("proj_one", "key"), store_pb2.StoredReply(method="one", created_at=_AT)),
    ("replies", ("proj_two", "key"), store_pb2.StoredReply(method="two", created_at=_AT)),
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A store that was of version 1."""
    folder = tmp_path / "store"
    folder.mkdir()
    with closing(lmdb.open(str(folder), map_size=_MAP_BYTES, max_dbs=9)) as environment:
        for table, key, row in _ROWS:
            database = environment.open_db(table.encode())
            with environment.begin(write=True, db=database) as transaction:
                transaction.put(pack(*key), row.SerializeToString())
    options = StoreOptions(map_limit_bytes=_MAP_BYTES, disk=QuickDisk(), clock=FakeClock())
    with closing(open_store(folder, SCHEMA, MIGRATIONS, protection(), options)) as store:
        yield store


def test_pins_of_a_session_name_it(store: Store) -> None:
    with store.read() as reader:
        for session in ("", "monday"):
            found = reader.get(PIN_SCOPES, "proj_one", session, b"a")
            assert found is not None
            assert found.session_id == session


def test_outcomes_of_calls_stay_those_of_their_project_and_expire(store: Store) -> None:
    with store.read() as reader:
        for project, method in (("proj_one", "one"), ("proj_two", "two")):
            found = reader.get(REPLIES, project, "key")
            assert found is not None
            assert found.method == method
            assert reader.get(REPLY_TIMES, _AT.ToNanoseconds(), project, "key") is not None


def test_numbers_go_on_and_are_known_to_have_been_given(store: Store) -> None:
    with store.read() as reader:
        assert reader.state().numbers[EPISODES.name] == 7
        assert not reader.doubts()
    assert store.write(lambda writer: writer.next_number(EPISODES)).result() == 8
