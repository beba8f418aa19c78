"""Which snapshots have to go."""

from __future__ import annotations

from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given
from hypothesis import strategies as st

from muniment.slots.retention import Retention
from muniment.v1 import slots_pb2

SECOND = 1_000_000_000


def _snapshot(name: str, *, age: int = 0, size: int = 10, session: str = "s") -> slots_pb2.Snapshot:
    return slots_pb2.Snapshot(
        snapshot_id=name,
        session_id=session,
        size_bytes=size,
        created_at=Timestamp(seconds=1000 - age),
    )


def _leaving(retention: Retention, *newest_first: slots_pb2.Snapshot) -> list[str]:
    return retention.leaving(newest_first, 1000 * SECOND)


def test_so_many_of_a_sessions_slot_are_kept() -> None:
    told = [_snapshot("d"), _snapshot("c"), _snapshot("x", session="t"), _snapshot("b")]
    assert _leaving(Retention(2, 100 * SECOND, 0), *told) == ["b"]


def test_what_is_too_old_goes() -> None:
    told = [_snapshot("b", age=99), _snapshot("a", age=101)]
    assert _leaving(Retention(9, 100 * SECOND, 0), *told) == ["a"]


def test_the_oldest_go_until_the_rest_fits() -> None:
    told = [_snapshot("c", size=60), _snapshot("b", size=60), _snapshot("a", size=40)]
    assert _leaving(Retention(9, 100 * SECOND, 100), *told) == ["b"]


def test_the_newest_stays_whatever_its_size() -> None:
    told = [_snapshot("b", size=500), _snapshot("a", size=1)]
    assert _leaving(Retention(1, 100 * SECOND, 100), *told) == ["a"]


@given(st.lists(st.tuples(st.integers(0, 200), st.integers(0, 50), st.sampled_from("st"))))
def test_what_stays_is_within_every_limit(made: list[tuple[int, int, str]]) -> None:
    told = [
        _snapshot(str(number), age=age, size=size, session=session)
        for number, (age, size, session) in enumerate(made)
    ]
    leaving = _leaving(Retention(3, 100 * SECOND, 120), *told)
    staying = [one for one in told if one.snapshot_id not in leaving]
    assert staying[:1] == told[:1]
    assert sum(one.size_bytes for one in staying[1:]) <= 120
    for session in "st":
        assert sum(one.session_id == session for one in staying) <= 3
