"""What a stranger who can write files does to a store, and what has to come of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from muniment.v1 import maintenance_pb2
from tests.support.tamper import Operation, Rows

__all__ = ["ATTACKS", "SEALED_ATTACKS", "Attack", "Scene", "kind_name", "number_key"]

EVERYWHERE = frozenset({"recall", "pins", "episodes", "stats", "projects"})
"""Ways of reading that may leave something out, and so tell of any doubt about the store."""

_UNUSED_NUMBER = (1 << 64) - 2
_EDITED = "6666 edited"

Make = Callable[["Scene"], Iterator[Operation]]


@dataclass(frozen=True)
class Scene:
    """A store at two moments, and the names of what is in it."""

    old: Rows
    """Before some of it was changed by its owner."""
    new: Rows
    """As it is."""
    names: Mapping[str, str]
    """Numbers, ids and digests by what they are of."""

    def key(self, table: str, name: str) -> str:
        """The key, in hex, of the row that is named so."""
        named = self.names[name]
        keys = [*self.new[table], *self.old[table]]
        if named.isdecimal():
            return next(key for key in keys if key.endswith(number_key(int(named))))
        # Ids are text in the key, digests are bytes.
        return next(key for key in keys if named.encode().hex() in key or named in key)

    def put_back(self, *tables: str) -> Iterator[Operation]:
        """Make whole tables what they were."""
        for table in tables:
            old, new = self.old[table], self.new[table]
            yield from ((table, key, None) for key in new.keys() - old.keys())
            yield from ((table, key, row) for key, row in old.items() if new.get(key) != row)

    def undo(self, operations: Sequence[Operation]) -> list[Operation]:
        """What makes the rows again what they are."""
        return [(table, key, self.new[table].get(key)) for table, key, _ in operations]


@dataclass(frozen=True)
class Attack:
    """What is done, what a verification has to find, and which reads have to mark it."""

    make: Make
    findings: frozenset[tuple[str, str]]
    """Kinds and tables that are among the findings."""
    names: tuple[str, ...] = ()
    """Whose ids are among the keys of the findings."""
    marks: frozenset[str] = frozenset()
    """Ways of reading that say that something is wrong."""
    marks_after_start: frozenset[str] = frozenset()
    """Those besides, when it was done while the service was stopped."""
    hides: tuple[str, ...] = ()
    """What no answer says."""


def number_key(number: int) -> str:
    """A number's key, in hex."""
    return f"03{number:016x}"


def kind_name(finding: maintenance_pb2.Finding) -> str:
    """The finding's kind, as people read it."""
    return maintenance_pb2.FindingKind.Name(finding.kind).removeprefix("FINDING_KIND_").lower()


# --- What is done


def _edit(table: str, name: str, old: str, new: str) -> Make:
    def make(scene: Scene) -> Iterator[Operation]:
        key = scene.key(table, name)
        before, after = old.encode().hex(), new.encode().hex()
        assert len(before) == len(after)
        assert before in scene.new[table][key]
        yield table, key, scene.new[table][key].replace(before, after)

    return make


def _flip(row: str) -> str:
    """The row with its last bit turned."""
    return row[:-2] + f"{int(row[-2:], 16) ^ 1:02x}"


def _spoil(table: str, name: str) -> Make:
    def make(scene: Scene) -> Iterator[Operation]:
        key = scene.key(table, name)
        yield table, key, _flip(scene.new[table][key])

    return make


def _delete(table: str, name: str) -> Make:
    def make(scene: Scene) -> Iterator[Operation]:
        yield table, scene.key(table, name), None

    return make


def _swap(table: str, one: str, other: str) -> Make:
    def make(scene: Scene) -> Iterator[Operation]:
        first, second = scene.key(table, one), scene.key(table, other)
        yield table, first, scene.new[table][second]
        yield table, second, scene.new[table][first]

    return make


def _older(*rows: tuple[str, str]) -> Make:
    def make(scene: Scene) -> Iterator[Operation]:
        for table, name in rows:
            key = scene.key(table, name)
            assert scene.old[table][key] != scene.new[table].get(key)
            yield table, key, scene.old[table][key]

    return make


def _tables(*tables: str) -> Make:
    return lambda scene: scene.put_back(*tables)


def _both(*makes: Make) -> Make:
    def make(scene: Scene) -> Iterator[Operation]:
        for one in makes:
            yield from one(scene)

    return make


def _insert(table: str, key: str) -> Make:
    """Insert a row that looks like the others of the table."""

    def make(scene: Scene) -> Iterator[Operation]:
        assert key not in scene.new[table]
        yield table, key, next(iter(scene.new[table].values()))

    return make


def _insert_beside(table: str, name: str) -> Make:
    def make(scene: Scene) -> Iterator[Operation]:
        key = scene.key(table, name)
        # The last byte ends the last part, so the one before it is changed.
        beside = key[:-4] + ("61" if key[-4:-2] != "61" else "62") + key[-2:]
        yield table, beside, scene.new[table][key]

    return make


def _changes(do: Callable[[list[str], Mapping[str, str]], list[Operation]]) -> Make:
    def make(scene: Scene) -> Iterator[Operation]:
        changes = scene.new["changes"]
        yield from do(sorted(changes), changes)

    return make


def _account(do: Callable[[str, str], str | None]) -> Make:
    """Do something with the store's account of itself: from the old and the new one."""

    def make(scene: Scene) -> Iterator[Operation]:
        key = max(scene.new["meta"], key=lambda one: len(scene.new["meta"][one]))
        yield "meta", key, do(scene.old["meta"][key], scene.new["meta"][key])

    return make


def _found(*found: str) -> frozenset[tuple[str, str]]:
    pairs = (one.split() for one in found)
    return frozenset((kind, table) for kind, table in pairs)


_OF_EPISODE = frozenset({"recall", "show"})

_ROWS_OF_EPISODES: Mapping[str, Attack] = {
    "a content is edited": Attack(
        _edit("contents", "port", "8080 at first", _EDITED + "  "),
        _found("row_tampered contents", "sum_mismatch contents"),
        names=("port_id",),
        marks=_OF_EPISODE,
        hides=(_EDITED,),
    ),
    "an episode is edited": Attack(
        _edit("episodes", "sky", "s-1", "s-9"),
        _found("row_tampered episodes", "sum_mismatch episodes"),
        names=("sky_id",),
        marks=_OF_EPISODE | {"episodes"},
        hides=("s-9",),
    ),
    "a supersession is edited": Attack(
        _edit("supersessions", "port", "ep_", "pe_"),
        _found("row_tampered supersessions", "sum_mismatch supersessions"),
        names=("port_id",),
        marks=_OF_EPISODE | {"episodes"},
        marks_after_start=EVERYWHERE,
        hides=("pe_",),
    ),
    "a content is deleted": Attack(
        _delete("contents", "port"),
        _found("row_missing contents", "sum_mismatch contents"),
        names=("port_id",),
        marks=_OF_EPISODE | EVERYWHERE,
    ),
    "an episode is deleted": Attack(
        _delete("episodes", "sky"),
        _found("row_missing episodes", "sum_mismatch episodes"),
        names=("sky_id",),
        marks=_OF_EPISODE | EVERYWHERE,
    ),
    "the newest episode is deleted": Attack(
        _both(_delete("episodes", "grass"), _delete("contents", "grass")),
        _found("row_missing episodes", "reference_broken episode_ids"),
        names=("grass_id",),
        marks=_OF_EPISODE | EVERYWHERE,
    ),
    "an episode id is deleted": Attack(
        _delete("episode_ids", "sky_id"),
        _found("row_missing episode_ids", "sum_mismatch episode_ids"),
        names=("sky_id",),
        marks=_OF_EPISODE | EVERYWHERE,
    ),
    "an entry of a session is deleted": Attack(
        _delete("sessions", "sky"),
        _found("row_missing sessions", "sum_mismatch sessions"),
        names=("sky_id",),
        marks=EVERYWHERE,
    ),
    "a supersession is deleted": Attack(
        _delete("supersessions", "port"),
        _found("row_missing supersessions", "sum_mismatch supersessions"),
        names=("port_id",),
        marks=_OF_EPISODE | EVERYWHERE,
        hides=("8080 at first",),
    ),
    "contents are swapped": Attack(
        _swap("contents", "port", "sky"),
        _found("row_tampered contents"),
        names=("port_id", "sky_id"),
        marks=_OF_EPISODE,
        hides=("8080 at first", "the sky is blue"),
    ),
    "episode ids are swapped": Attack(
        _swap("episode_ids", "port_id", "sky_id"),
        _found("row_tampered episode_ids"),
        names=("port_id", "sky_id"),
        marks=_OF_EPISODE,
    ),
    "entries of a session are swapped": Attack(
        _swap("sessions", "port", "sky"),
        _found("row_tampered sessions"),
        names=("port_id", "sky_id"),
        marks=frozenset({"episodes"}),
    ),
    "an older supersession is put back": Attack(
        _older(("supersessions", "port")),
        _found("row_older supersessions", "sum_mismatch supersessions"),
        names=("port_id",),
        marks=_OF_EPISODE | {"episodes"},
        marks_after_start=EVERYWHERE,
    ),
    "an episode is inserted": Attack(
        _both(
            _insert("episodes", number_key(_UNUSED_NUMBER)),
            _insert("contents", number_key(_UNUSED_NUMBER)),
        ),
        _found("row_tampered episodes", "row_tampered contents", "sum_mismatch episodes"),
        marks=EVERYWHERE,
    ),
    "an entry of a session is inserted": Attack(
        _insert_beside("sessions", "sky"),
        _found("row_tampered sessions", "sum_mismatch sessions"),
        marks=EVERYWHERE,
    ),
}

_ROWS_OF_PINS: Mapping[str, Attack] = {
    "a pin is edited": Attack(
        _edit("pins", "push_pin", "force-push", _EDITED[1:]),
        _found("row_tampered pins", "sum_mismatch pins"),
        names=("push_pin",),
        marks=frozenset({"recall", "pins"}),
        marks_after_start=EVERYWHERE,
        hides=(_EDITED[1:],),
    ),
    "the place of a pin is edited": Attack(
        _edit("pin_scopes", "push_place", "pin_", "pun_"),
        _found("row_tampered pin_scopes", "sum_mismatch pin_scopes"),
        names=("push_pin",),
        marks=frozenset({"pins"}),
        marks_after_start=EVERYWHERE,
        hides=("pun_",),
    ),
    "a pin is deleted": Attack(
        _delete("pins", "push_pin"),
        _found("row_missing pins", "sum_mismatch pins"),
        names=("push_pin",),
        marks=EVERYWHERE,
    ),
    "the place of a pin is deleted": Attack(
        _delete("pin_scopes", "push_place"),
        _found("row_missing pin_scopes", "sum_mismatch pin_scopes"),
        names=("push_pin",),
        marks=EVERYWHERE,
    ),
    "pins are swapped": Attack(
        _swap("pins", "push_pin", "late_pin"),
        _found("row_tampered pins"),
        names=("push_pin", "late_pin"),
        marks=frozenset({"recall", "pins"}),
        marks_after_start=EVERYWHERE,
    ),
    "an older kind of a pin is put back": Attack(
        _older(("pins", "push_pin")),
        _found("row_older pins", "sum_mismatch pins"),
        names=("push_pin",),
        marks=frozenset({"recall", "pins"}),
        marks_after_start=EVERYWHERE,
        hides=("[TASK CONTRACT] never force-push",),
    ),
    "a pin that was taken away is put back": Attack(
        _older(("pins", "tests_pin"), ("pin_scopes", "tests_place")),
        _found("row_older pins", "row_older pin_scopes"),
        names=("tests_pin",),
        marks=EVERYWHERE,
        hides=("always run the tests",),
    ),
    "a pin is inserted": Attack(
        _both(
            _insert_beside("pins", "push_pin"),
            _insert_beside("pin_scopes", "push_place"),
        ),
        _found("row_tampered pins", "row_tampered pin_scopes"),
        marks=EVERYWHERE,
    ),
    "a project is edited": Attack(
        _edit("projects", "project", "proj_", "porj_"),
        _found("row_tampered projects", "sum_mismatch projects"),
        names=("project",),
        marks=frozenset({"stats", "projects"}),
        marks_after_start=EVERYWHERE,
        hides=("porj_",),
    ),
    "an older project is put back": Attack(
        _older(("projects", "project")),
        _found("sum_mismatch projects"),
        marks=frozenset({"stats", "projects"}),
        marks_after_start=EVERYWHERE,
    ),
    "a project is deleted": Attack(
        _delete("projects", "project"),
        _found("row_missing projects", "sum_mismatch projects"),
        names=("project",),
        marks=EVERYWHERE,
    ),
}

_WHOLE: Mapping[str, Attack] = {
    "older pins are put back with their part of the feed": Attack(
        _both(_older(("pins", "push_pin")), _tables("changes")),
        _found("row_older pins", "feed_broken changes", "sum_mismatch changes"),
        names=("push_pin",),
        marks=EVERYWHERE,
        hides=("[TASK CONTRACT] never force-push",),
    ),
    "all pins are put back": Attack(
        _tables("pins", "pin_scopes"),
        _found("row_older pins", "row_older pin_scopes"),
        marks=EVERYWHERE,
        hides=("[TASK CONTRACT] never force-push", "always run the tests"),
    ),
    "all pins are put back with feed and account": Attack(
        _tables("pins", "pin_scopes", "supersessions", "changes", "meta"),
        _found("state_mismatch meta", "row_older pins", "feed_broken changes"),
        marks=EVERYWHERE,
        hides=("[TASK CONTRACT] never force-push", "always run the tests"),
    ),
    "the end of the feed is cut off": Attack(
        _changes(lambda keys, rows: [("changes", key, None) for key in keys[-3:]]),
        _found("feed_broken changes", "sum_mismatch changes"),
        marks=EVERYWHERE,
    ),
    "a change is taken out of the feed": Attack(
        _changes(lambda keys, rows: [("changes", keys[2], None)]),
        _found("feed_broken changes", "sum_mismatch changes"),
        marks=EVERYWHERE,
    ),
    "a change is edited": Attack(
        _changes(lambda keys, rows: [("changes", keys[2], _flip(rows[keys[2]]))]),
        _found("feed_broken changes", "sum_mismatch changes"),
    ),
    "changes are swapped": Attack(
        _changes(
            lambda keys, rows: [
                ("changes", keys[2], rows[keys[3]]),
                ("changes", keys[3], rows[keys[2]]),
            ]
        ),
        _found("feed_broken changes", "sum_mismatch changes"),
    ),
    "a change is inserted far away": Attack(
        _insert("changes", number_key(_UNUSED_NUMBER)),
        _found("feed_broken changes", "sum_mismatch changes"),
        marks=EVERYWHERE,
    ),
    "an outcome that never expires is inserted": Attack(
        _insert("reply_times", number_key(1)),
        _found("row_tampered reply_times", "sum_mismatch reply_times"),
        marks=EVERYWHERE,
    ),
    "an older account is put back": Attack(
        _account(lambda old, new: old), _found("state_mismatch meta"), marks=EVERYWHERE
    ),
    "the account is edited": Attack(
        _account(lambda old, new: _flip(new)), _found("state_mismatch meta"), marks=EVERYWHERE
    ),
    "the account is deleted": Attack(
        _account(lambda old, new: None), _found("state_mismatch meta"), marks=EVERYWHERE
    ),
    "a fact of the store is inserted": Attack(
        _insert("meta", "026f7468657200"), _found("row_unknown meta")
    ),
}

ATTACKS: Mapping[str, Attack] = {**_ROWS_OF_EPISODES, **_ROWS_OF_PINS, **_WHOLE}

SEALED_ATTACKS: Mapping[str, Attack] = {
    "a content is spoilt": Attack(
        _spoil("contents", "port"),
        _found("row_tampered contents", "sum_mismatch contents"),
        names=("port_id",),
        marks=_OF_EPISODE,
    ),
    **{
        name: ATTACKS[name]
        for name in (
            "an episode is deleted",
            "contents are swapped",
            "an older supersession is put back",
            "all pins are put back",
            "all pins are put back with feed and account",
            "the end of the feed is cut off",
            "a change is edited",
            "an older account is put back",
            "the account is edited",
        )
    },
}
"""What can be done where keys and values say nothing."""
