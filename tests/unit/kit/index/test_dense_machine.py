"""Whatever is written, taken, purged, restarted and made anew: the index has what the store has."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muniment.kit.index.dense_filling import DenseFollower
from muniment.kit.index.dense_vectors import VECTORS, text_digest
from tests.support.dense import MODEL, HashedEmbedder, NotesSource, an_index, notes_store, put
from tests.support.rows import scan
from tests.support.stores import NOTES, text

NAMES = st.sampled_from([f"n{number}" for number in range(8)])
TEXTS = st.sampled_from(["-", "harbour", "lantern", "quorum", "harbour lantern", ""])
STEPS = st.one_of(
    st.tuples(st.just("put"), NAMES, TEXTS),
    st.tuples(st.just("purge"), NAMES, st.just("")),
    st.tuples(st.sampled_from(["settle", "restart", "rebuild"]), st.just(""), st.just("")),
)
SECONDS = 20.0


class Machine:
    """A store, its index, and what should be in both."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.model: dict[str, str] = {}
        self.open()

    def open(self) -> None:
        """Open the store, and let the index follow."""
        self.store = notes_store(self.folder / "store")
        self.index = an_index(self.folder / "dense")
        self.follower = DenseFollower(self.store, self.index, NotesSource(), HashedEmbedder())
        self.store.follow(self.follower)

    def close(self) -> None:
        """Close all, with whatever is under way."""
        self.follower.close()
        self.index.close()
        self.store.close()

    def do(self, what: str, name: str, value: str) -> None:
        """Do one step."""
        match what:
            case "put":
                self.model[name] = value
                put(self.store, **{name: value})
            case "purge":
                self.purge(name)
            case "settle":
                assert self.follower.settle(SECONDS), self.follower.trouble
            case "restart":
                self.close()
                self.open()
            case "rebuild":
                self.follower.rebuild()

    def purge(self, name: str) -> None:
        """Take the note away, and the vector of what it says."""
        value = self.model.pop(name, None)

        def change(writer: Any) -> None:
            writer.purge(NOTES, name)
            if value is not None:
                self.follower.forget(writer, value)

        self.store.write(change).result(SECONDS)

    def check(self) -> None:
        """Fail where the index has not what the store has."""
        assert self.follower.settle(SECONDS), self.follower.trouble
        found = {name: value for name, value in self.model.items() if value != "-"}
        digests = {name: text_digest(MODEL, value) for name, value in found.items()}
        assert {
            key: digest for key, (_, digest) in self.index.known(list(self.index.keys())).items()
        } == digests
        with self.store.read() as reader:
            kept = {key[0] for key, _ in scan(reader, VECTORS)}
        assert kept <= {bytes.fromhex(digest) for digest in digests.values()}
        for name, value in found.items():
            matches = self.index.search(HashedEmbedder().embed([value])[0], len(found))
            assert {match.key for match in matches} == set(found)
            best = max(match.similarity for match in matches)
            assert next(one for one in matches if one.key == name).similarity == best


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(STEPS, max_size=25))
def test_the_index_has_what_the_store_has(steps: list[tuple[str, str, str]]) -> None:
    with TemporaryDirectory() as folder:
        machine = Machine(Path(folder))
        try:
            for step in steps:
                machine.do(*step)
            machine.check()
            assert machine.store.path.is_dir()
        finally:
            machine.close()


def test_many_rewritten_notes_stay_to_be_found(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    for turn in range(6):
        names = [f"n{number}" for number in range(60)]
        values = {name: f"{name} says {turn}" for name in names}
        machine.model.update(values)
        put(machine.store, **values)
        for name in names[turn::6]:
            machine.purge(name)
        machine.check()
    rows = {name: text(value) for name, value in machine.model.items()}
    assert len(rows) == machine.index.count
    machine.close()
