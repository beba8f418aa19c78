"""A purge takes everything of a project, leaves all else, and says afterwards what was there."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from muniment.kit import faults
from muniment.kit.context import CallContext
from muniment.kit.errors import ConflictError, NotFoundError, UnavailableError
from muniment.kit.store import read_feed
from muniment.kit.store.tables import CHANGES, REPLIES, REPLY_TIMES
from muniment.kit.store.verify import verify_store
from muniment.memory.episodes import known_episode, list_episodes, read_content
from muniment.memory.projects import list_projects
from muniment.memory.schema import EPISODE_IDS, PURGES, TOMBSTONES
from muniment.memory.verification import MemoryChecks
from muniment.v1 import memory_pb2
from tests.support.bare_memory import BareMemory, a_bare_memory
from tests.support.crashes import Crash, dying_at
from tests.waiting import until

ONE, OTHER = "proj_one", "proj_other"

PLANTED = ("quixotic", "zanzibar", "marmalade", "obelisk", "session-of-secrets", "weathervane")
"""Words of the project that is purged, in every place that takes words; none is in another."""


def plant(memory: BareMemory) -> list[memory_pb2.Episode]:
    """A project with a word in every place."""
    session = "session-of-secrets"
    first = memory.commit(ONE, "the quixotic plan " + "x" * 9000, session_id=session)
    second = memory.commit(
        ONE, "a small zanzibar", tool_name="weathervane", role=memory_pb2.ROLE_TOOL
    )
    third = memory.commit(
        ONE, "no, obelisk", session_id=session, corrects=first.episode_id, root="/obelisk"
    )
    rule = memory.pin(ONE, "always marmalade", session_id=session)
    memory.pin(
        ONE, "always marmalade", session_id=session, kind=memory_pb2.PIN_KIND_USER_CORRECTION
    )
    memory.unpin(ONE, rule)
    memory.pin(ONE, "rather marmalade")
    with pytest.raises(NotFoundError):
        memory.commit(ONE, "obelisk", corrects="ep_zanzibar")
    return [first, second, third]


def keep(memory: BareMemory, count: int = 3) -> list[memory_pb2.Episode]:
    """Another project."""
    found = [memory.commit(OTHER, f"a lighthouse {number}") for number in range(count)]
    memory.pin(OTHER, "mind the lighthouse")
    return found


def leaks(folder: Path) -> list[tuple[str, str]]:
    """Which planted word is in which file, in any case."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    return [
        (word, path.name)
        for path in files
        for word in PLANTED
        if word.encode() in path.read_bytes().lower()
    ]


def demand_sound(memory: BareMemory) -> None:
    """Fail where a verification of the store finds something."""

    def settle() -> None:
        memory.store.write(lambda writer: None).result()

    checks = MemoryChecks(memory.index, memory.store.read, settle)
    verified = verify_store(memory.store, checks, lambda step, done, total: None)
    assert not list(verified.findings.listed)


@contextmanager
def at_point(point: str, do: Callable[[], None]) -> Iterator[None]:
    """Do something when a fault point is passed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(faults, "reach", lambda reached: do() if reached == point else None)
        yield


@pytest.mark.parametrize("sealed", [False, True])
def test_nothing_of_it_is_left_and_all_else_is(tmp_path: Path, sealed: bool) -> None:
    with a_bare_memory(tmp_path, sealed=sealed) as memory:
        plant(memory)
        others = keep(memory)
        before = memory.export(OTHER).splitlines()[1:-1]
        if not sealed:
            assert {word for word, _ in leaks(tmp_path)} == {*PLANTED}
        result = memory.purge(ONE)
        assert (result.purged.episodes, result.purged.pins) == (3, 1)
        assert not result.already_purged
        assert memory.export(OTHER).splitlines()[1:-1] == before
        assert next(hit.episode.seq for hit in memory.recall(OTHER, "lighthouse 1").hits) == 5
        for one in others:
            assert memory.episode(OTHER, one.episode_id) == one
        assert memory.commit(OTHER, "goes on").seq == 7
        demand_sound(memory)
    assert leaks(tmp_path) == []


def test_what_is_left_of_it_in_the_tables_are_digests(tmp_path: Path) -> None:
    with a_bare_memory(tmp_path, sealed=True) as memory:
        plant(memory)
        memory.purge(ONE)
        with memory.store.read() as reader:
            for table in memory.store.schema.all_tables():
                for key, value in reader.survey(table):
                    told = f"{key} {value}".lower()
                    assert not [word for word in PLANTED if word in told], table.name
            assert reader.count(EPISODE_IDS) == 0
            # The purge itself is an outcome that is kept.
            assert (reader.count(REPLIES), reader.count(REPLY_TIMES)) == (1, 1)
            changes = read_feed(reader, 0, reader.count(CHANGES)).changes
        assert [position for position, _ in changes] == list(range(1, len(changes) + 1))
        demand_sound(memory)


def test_who_asks_for_it_is_told_when_it_was_purged(tmp_path: Path) -> None:
    with a_bare_memory(tmp_path) as memory:
        first, *_ = plant(memory)
        memory.purge(ONE)
        with memory.store.read() as reader:
            with pytest.raises(NotFoundError) as caught:
                known_episode(reader, ONE, first.episode_id)
            assert caught.value.reason == "EPISODE_PURGED"
            assert "purged on 2025-" in caught.value.message
            assert "purged on 2025-" in list_episodes(reader, ONE, None, 0, 9).notes[0]
            listed = list_projects(reader)
        assert [(one.project_id, one.episodes, one.pins) for one in listed.purged] == [(ONE, 3, 1)]
        assert not listed.projects
        named = memory.recall(ONE, f"what was {first.episode_id}?")
        assert any("purged on" in note and first.episode_id in note for note in named.notes)
        assert any("purged on" in note for note in memory.recall(ONE, "quixotic").notes)


def test_an_id_that_is_younger_than_the_purge_was_never_there(tmp_path: Path) -> None:
    with a_bare_memory(tmp_path) as memory:
        plant(memory)
        memory.purge(ONE)
        memory.commit(ONE, "again")
        with memory.store.read() as reader, pytest.raises(NotFoundError) as caught:
            known_episode(reader, ONE, memory.ids.new("ep"))
        assert caught.value.reason == "EPISODE_UNKNOWN"


def test_places_are_not_given_again_and_the_tombstone_explains_them(tmp_path: Path) -> None:
    with a_bare_memory(tmp_path) as memory:
        memory.commit(OTHER, "one")
        for number in range(2, 5):
            memory.commit(ONE, f"{number}")
        memory.commit(OTHER, "five")
        memory.commit(ONE, "the newest")
        memory.purge(ONE)
        assert memory.commit(OTHER, "seven").seq == 7
        with memory.store.read() as reader:
            tombstone = reader.get(TOMBSTONES, ONE)
        assert tombstone is not None
        assert [(run.first, run.last) for run in tombstone.seqs] == [(2, 4), (6, 6)]


def test_a_second_purge_says_so(tmp_path: Path) -> None:
    with a_bare_memory(tmp_path) as memory:
        plant(memory)
        first = memory.purge(ONE)
        second = memory.purge(ONE)
        assert second.already_purged
        assert second.purged == first.purged


def test_the_same_key_has_the_same_answer(tmp_path: Path) -> None:
    with a_bare_memory(tmp_path) as memory:
        plant(memory)
        first = memory.purge(ONE, key="key-of-mine")
        memory.commit(ONE, "a new life")
        assert memory.purge(ONE, key="key-of-mine") == first
        assert memory.recall(ONE, "new life").hits
        with pytest.raises(ConflictError):
            memory.purge(OTHER, key="key-of-mine")


def test_a_project_of_which_nothing_is_known_is_an_error(tmp_path: Path) -> None:
    with a_bare_memory(tmp_path) as memory:
        keep(memory)
        with pytest.raises(NotFoundError) as caught:
            memory.purge("proj_none")
        assert caught.value.reason == "PROJECT_UNKNOWN"


def test_a_project_may_begin_again_and_be_purged_again(tmp_path: Path) -> None:
    with a_bare_memory(tmp_path) as memory:
        plant(memory)
        first = memory.purge(ONE).purged
        again = memory.commit(ONE, "an obelisk anew", session_id="s-2")
        memory.pin(ONE, "rather marmalade")
        assert memory.recall(ONE, "obelisk").hits[0].episode == again
        assert [pin.content for pin in memory.pins(ONE)] == ["rather marmalade"]
        demand_sound(memory)
        second = memory.purge(ONE).purged
        assert (second.episodes, second.pins) == (1, 1)
        assert second.purged_at.ToNanoseconds() > first.purged_at.ToNanoseconds()
        with memory.store.read() as reader:
            (told,) = list_projects(reader).purged
        assert (told.episodes, told.pins) == (4, 2)
        demand_sound(memory)
    assert leaks(tmp_path) == []


def test_once_it_is_marked_nothing_of_it_is_shown(tmp_path: Path) -> None:
    shown: list[object] = []
    with a_bare_memory(tmp_path) as memory:
        first, *_ = plant(memory)
        keep(memory)

        def look() -> None:
            with memory.store.read() as reader:
                assert reader.get(PURGES, ONE) is not None
                # The row is still there.
                assert read_content(reader, first.seq)
                shown.extend(list_episodes(reader, ONE, None, 0, 9).episodes)
                shown.extend(list_episodes(reader, ONE, first.session_id, 0, 9).episodes)
                with pytest.raises(NotFoundError):
                    known_episode(reader, ONE, first.episode_id)
            for query in ("quixotic zanzibar obelisk marmalade", first.episode_id):
                shown.extend(memory.recall(ONE, query).hits)
            shown.extend(memory.pins(ONE))
            with pytest.raises(NotFoundError):
                memory.export(ONE)
            assert b"quixotic" not in memory.export()
            with pytest.raises(NotFoundError):
                memory.commit(ONE, "x", session_id=first.session_id, corrects=first.episode_id)
            # What begins meanwhile is no part of what is purged.
            memory.commit(ONE, "a new life")
            demand_sound(memory)

        with at_point("purge.marked", look):
            memory.purge(ONE)
        assert shown == []
        assert [hit.text for hit in memory.recall(ONE, "new life").hits] == ["a new life"]
        demand_sound(memory)
    assert leaks(tmp_path) == []


def test_nothing_is_brought_back_meanwhile(tmp_path: Path) -> None:
    with a_bare_memory(tmp_path) as memory:
        plant(memory)
        lines = memory.export(ONE)
        with dying_at("purge.marked"), pytest.raises(Crash):
            memory.purge(ONE)
        imported = memory.take(lines, revive=True)
        # Episodes that are not gone yet are passed over as such that are here.
        assert {one.field for one in imported.remarks} == {"project_id"}
        assert imported.result.episodes.imported == imported.result.pins.imported == 0
        memory.purge(ONE)
        assert memory.take(lines, revive=True).result.episodes.imported == 3
        demand_sound(memory)


def test_others_lose_nothing_meanwhile(tmp_path: Path) -> None:
    acknowledged: list[memory_pb2.Episode] = []
    ended = threading.Event()
    with a_bare_memory(tmp_path) as memory:
        plant(memory)
        for number in range(150):
            memory.commit(ONE, f"marmalade {number}")

        def talk(name: str) -> None:
            while not ended.is_set():
                acknowledged.append(memory.commit(OTHER, f"{name} says {len(acknowledged)}"))

        threads = [threading.Thread(target=talk, args=(name,)) for name in ("ann", "bob")]
        for thread in threads:
            thread.start()
        steps: set[str] = set()
        memory.purge(ONE, report=lambda step, done, total: steps.add(step))
        ended.set()
        for thread in threads:
            thread.join()
        assert len(steps) >= 5
        with memory.store.read() as reader:
            listed = list_episodes(reader, OTHER, None, 0, 100_000).episodes
        assert {one.episode_id for one in listed} == {one.episode_id for one in acknowledged}
        assert all(memory.episode(OTHER, one.episode_id) == one for one in acknowledged)
        demand_sound(memory)
    assert leaks(tmp_path) == []


def test_rows_that_cannot_be_believed_go_too(tmp_path: Path) -> None:
    with a_bare_memory(tmp_path) as memory:
        first, second, _ = plant(memory)
        place = memory.store.protection.address

        def spoil() -> None:
            with memory.store.standing_still() as environment:
                for table, address in (
                    ("episodes", place(first.seq)),
                    ("sessions", place(ONE, second.session_id, second.seq)),
                    ("projects", place(ONE)),
                ):
                    database = environment.open_db(table.encode())
                    with environment.begin(write=True, db=database) as transaction:
                        row = transaction.get(address)
                        assert row is not None
                        transaction.put(address, bytes(row)[:-1] + bytes([row[-1] ^ 1]))

        memory.store.between(spoil).result()
        assert memory.purge(ONE).purged.episodes == 3
        with memory.store.read() as reader:
            assert reader.count(EPISODE_IDS) == 0
    assert leaks(tmp_path) == []


def test_copies_that_were_set_aside_go_too(tmp_path: Path) -> None:
    with a_bare_memory(tmp_path) as memory:
        plant(memory)
    aside = tmp_path / "store.before-restore-20260101T000000Z"
    aside.mkdir()
    (aside / "data.mdb").write_bytes((tmp_path / "store" / "data.mdb").read_bytes())
    with a_bare_memory(tmp_path) as memory:
        memory.purge(ONE)
    assert not aside.exists()
    assert leaks(tmp_path) == []


@pytest.mark.parametrize(
    "point", ["purge.marked", "purge.emptied", "purge.compacted", "purge.indexed"]
)
def test_what_was_begun_is_finished_by_the_next_start(tmp_path: Path, point: str) -> None:
    with a_bare_memory(tmp_path) as memory:
        plant(memory)
        others = keep(memory)
        with dying_at(point), pytest.raises(Crash):
            memory.purge(ONE)
    with a_bare_memory(tmp_path) as memory:
        memory.purger.resume()
        # It waits for what goes on.
        assert memory.purge(ONE).already_purged
        with memory.store.read() as reader:
            assert reader.count(PURGES) == 0
        assert all(memory.episode(OTHER, one.episode_id) == one for one in others)
        demand_sound(memory)
    assert leaks(tmp_path) == []


def test_who_asks_again_meanwhile_waits_for_the_end(tmp_path: Path) -> None:
    with a_bare_memory(tmp_path) as memory:
        plant(memory)
        with dying_at("purge.emptied"), pytest.raises(Crash):
            memory.purge(ONE)
        result = memory.purge(ONE)
        assert (result.purged.episodes, result.purged.pins) == (3, 1)
        assert not result.already_purged
    assert leaks(tmp_path) == []


def test_a_service_that_stops_does_not_wait_for_the_end(tmp_path: Path) -> None:
    with a_bare_memory(tmp_path) as memory:
        plant(memory)
        closing = threading.Thread(target=memory.purger.close)

        def is_closed() -> bool:
            try:
                memory.purger.purge(CallContext(), memory_pb2.PurgeProjectRequest(), quiet)
            except UnavailableError:
                return True
            return False

        def close() -> None:
            closing.start()
            until(is_closed, "the purger is closed")

        with at_point("purge.marked", close), pytest.raises(UnavailableError) as caught:
            memory.purge(ONE)
        closing.join()
    assert caught.value.reason == "PURGE_INTERRUPTED"
    with a_bare_memory(tmp_path) as memory:
        assert not memory.purge(ONE).already_purged
    assert leaks(tmp_path) == []


def quiet(step: str, done: int, total: int) -> None:
    """Nobody listens."""
