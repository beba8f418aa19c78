"""A tree that is brought up to the disk, and what is told of it."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path

import pytest

from muniment.code import indexing
from muniment.code.answers import Symbols, find_symbols
from muniment.code.freshness import Answered, answer
from muniment.code.readers import Readers
from muniment.code.schema import FILES, TREES
from muniment.code.tree_rows import TreeRows, stored_trees, tree_id
from muniment.code.trees import Trees
from muniment.kit.errors import InvalidArgumentError
from muniment.v1 import code_pb2
from tests.support.code_trees import (
    FILE_LIMIT_BYTES,
    PROJECT,
    Repository,
    a_code_store,
    an_index,
    an_index_of,
    current_symbols,
    exported,
    symbols,
)
from tests.waiting import until


def _names(trees: Trees, root: Path, name: str) -> list[str]:
    found = current_symbols(trees, root, name)
    return [one.qualified_name for one in found.value.definitions]


def _scan(trees: Trees, root: Path, name: str) -> int:
    with trees.find(PROJECT, str(root)).tree.graph() as graph:
        (place,) = graph.find(name).places
        return graph.symbol(place).changed_scan


def test_every_query_sees_what_changed_before_it(readers: Readers, repository: Repository) -> None:
    root = repository.path
    with an_index(readers) as trees:
        repository.write(a="def one(): pass\n", sub__b="def two(): pass\n")
        assert _names(trees, root, "one") == ["a::one"]
        repository.write(a="def uno(): pass\n")
        assert (_names(trees, root, "one"), _names(trees, root, "uno")) == ([], ["a::uno"])
        (root / "a.py").rename(root / "sub/c.py")
        assert _names(trees, root, "uno") == ["sub::c::uno"]
        (root / "sub").rename(root / "moved")
        assert _names(trees, root, "two") == ["moved::b::two"]
        (root / "moved/b.py").write_text("def two(:\n")
        (root / "moved/c.py").unlink()
        assert _names(trees, root, "uno") == []
        (root / ".gitignore").write_text("moved/\n")
        assert _names(trees, root, "two") == []
        (root / ".gitignore").unlink()
        assert _names(trees, root, "b") == ["moved::b"]


def test_a_file_that_is_exchanged_under_its_size_and_time_is_seen(
    readers: Readers, repository: Repository
) -> None:
    repository.write(a="def one(): pass\n")
    path = repository.path / "a.py"
    with an_index(readers) as trees:
        assert _names(trees, repository.path, "one")
        times = path.stat()
        for name in ("two", "six", "ten"):
            path.write_text(f"def {name}(): pass\n")
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
            assert _names(trees, repository.path, name)
        other = repository.path / "b"
        other.write_text("def fox(): pass\n")
        os.utime(other, ns=(times.st_atime_ns, times.st_mtime_ns))
        other.replace(path)
        assert _names(trees, repository.path, "fox")


def test_what_did_not_change_is_not_read_again(readers: Readers, repository: Repository) -> None:
    repository.write(a="def one(): pass\n", b="def two(): pass\n", c="")
    for path in repository.path.glob("*.py"):
        os.utime(path, (1, 1))
    with an_index(readers) as trees:
        tree = trees.find(PROJECT, str(repository.path)).tree
        assert tree.look().result() == indexing.RunResult(parsed=3, unchanged=0, removed=0)
        repository.write(b="def two(x): pass\n")
        (repository.path / "c.py").unlink()
        (repository.path / "a.py").touch()
        assert tree.look().result() == indexing.RunResult(parsed=1, unchanged=1, removed=1)
        assert tree.run(anew=True).result() == indexing.RunResult(2, 0, 0)


def test_a_symbol_is_as_old_as_its_last_change(readers: Readers, repository: Repository) -> None:
    repository.write(a="def one(): return 1\ndef two(): return one()\n")
    with an_index(readers) as trees:
        root = repository.path
        assert _names(trees, root, "one")
        first = _scan(trees, root, "a::one")
        repository.write(a="# a comment\ndef one(): return 2\ndef two():\n    return one()\n")
        assert _names(trees, root, "one")
        assert _scan(trees, root, "a::one") > first
        assert _scan(trees, root, "a::two") == first
        trees.find(PROJECT, str(root)).tree.run(anew=True).result()
        assert _scan(trees, root, "a::two") == first


def test_worktrees_of_a_project_do_not_mix(readers: Readers, repository: Repository) -> None:
    repository.write(a="def one(): pass\n")
    repository.commit()
    other = repository.path.with_name("other")
    repository.git("worktree", "add", "--quiet", str(other), "-b", "branch")
    (other / "a.py").write_text("def two(): pass\n")
    with an_index(readers) as trees:
        assert _names(trees, repository.path, "one") == ["a::one"]
        assert _names(trees, other, "two") == ["a::two"]
        assert _names(trees, repository.path, "two") == []
        assert _names(trees, other, "one") == []


def test_a_branch_switch_leaves_no_ghosts(readers: Readers, repository: Repository) -> None:
    repository.write(a="def one(): pass\n", b="import a\na.one()\n")
    repository.commit()
    repository.git("checkout", "--quiet", "-b", "branch")
    repository.git("rm", "--quiet", "a.py")
    repository.write(c="def three(): pass\n", b="import c\nc.three()\n")
    repository.commit()
    with an_index(readers) as trees:
        here = exported(trees, repository.path)
        repository.git("checkout", "--quiet", "main")
        assert _names(trees, repository.path, "three") == []
        assert _names(trees, repository.path, "one") == ["a::one"]
        repository.git("checkout", "--quiet", "branch")
        assert exported(trees, repository.path) == here


def test_the_index_outlives_its_process(
    readers: Readers, repository: Repository, tmp_path: Path
) -> None:
    repository.write(a="def one(): pass\n", b="import a\ndef two(): a.one()\n")
    folder = tmp_path / "store"
    for sealed in (False, True):
        with an_index(readers, folder / str(sealed), sealed=sealed) as trees:
            before = exported(trees, repository.path)
        with an_index(readers, folder / str(sealed), sealed=sealed) as trees:
            tree = trees.find(PROJECT, str(repository.path)).tree
            assert tree.look().result().parsed == 0
            assert exported(trees, repository.path) == before


def test_another_reader_version_reads_everything_again(
    readers: Readers, repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.write(a="def one(): pass\n", b="")
    folder = tmp_path / "store"
    with an_index(readers, folder) as trees:
        exported(trees, repository.path)
    with a_code_store(folder) as store:
        # As an earlier version of the program left it.
        rows = TreeRows(store, tree_id(os.fsencode(repository.path)))
        tree, files = rows.tree(), list(rows.files())
        assert tree is not None
        for row in files:
            row.reader_version -= 1
        files[0].facts.symbols[0].name = "ghost"
        rows.keep(tree, files)
    with an_index(readers, folder) as trees:
        tree_now = trees.find(PROJECT, str(repository.path)).tree
        assert tree_now.look().result().parsed == 2
        assert _names(trees, repository.path, "ghost") == []
        assert _names(trees, repository.path, "one")


def test_forgetting_a_project_takes_all_of_its_trees(
    readers: Readers, repository: Repository, tmp_path: Path
) -> None:
    repository.write(a="def one(): pass\n")
    other = Repository(tmp_path / "other")
    other.write(b="", c="")
    kept = Repository(tmp_path / "kept")
    kept.write(d="")
    with a_code_store(tmp_path / "store") as store, an_index_of(readers, store) as trees:
        for root in (repository.path, other.path):
            trees.find(PROJECT, str(root)).tree.look().result()
        trees.find("proj_other", str(kept.path)).tree.look().result()
        assert trees.forget_project(PROJECT) == 3
        assert trees.forget_project(PROJECT) == 0
        with store.read() as reader:
            assert (reader.count(TREES), reader.count(FILES)) == (1, 1)
        assert trees.find(PROJECT, str(repository.path)).tree.state().files == 0


def test_a_tree_whose_folder_is_gone_is_forgotten(
    readers: Readers, repository: Repository, tmp_path: Path
) -> None:
    gone = Repository(tmp_path / "gone")
    for one in (repository, gone):
        one.write(a="")
    with a_code_store(tmp_path / "store") as store:
        with an_index_of(readers, store) as trees:
            for one in (repository, gone):
                trees.find(PROJECT, str(one.path)).tree.look().result()
        shutil.rmtree(gone.path)
        with an_index_of(readers, store) as trees:
            trees.forget_gone()
            assert [row.root for row in stored_trees(store).values()] == [str(repository.path)]


def test_what_is_read_is_answered_from_while_the_rest_is_read(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(40):
        repository.write(**{f"f{number:02}": f"def g{number:02}(): pass\n"})
    monkeypatch.setattr(indexing, "_BATCH_FILES", 16)
    gate, readers = threading.Event(), _GatedReaders(1, FILE_LIMIT_BYTES)
    readers.gate = gate
    try:
        with an_index(readers) as trees:
            early = until(lambda: _early(trees, repository.path), "the first files are read")
            assert early.state.freshness == code_pb2.FRESHNESS_NOT_INDEXED
            assert "that has begun" in early.state.note
            assert 0 < early.state.waiting_files < 40
            assert [one.qualified_name for one in early.value.definitions] == ["f00::g00"]
            gate.set()
            late = current_symbols(trees, repository.path, "g39")
            assert late.value.definitions
    finally:
        readers.close()


def _early(trees: Trees, root: Path) -> Answered[Symbols] | None:
    found = symbols(trees, root, "g00")
    return found if found.value.definitions else None


class _GatedReaders(Readers):
    """Reads on behind the first files only when it may."""

    gate: threading.Event

    def read(self, requests):  # type: ignore[no-untyped-def]
        for number, some in enumerate(super().read(requests)):
            if number:
                assert self.gate.wait(30)
            yield some


@pytest.mark.parametrize("root", ["", "relative/path", "/no/such/folder", "{file}"])
def test_a_root_must_be_a_folder(readers: Readers, tmp_path: Path, root: str) -> None:
    file = tmp_path / "file"
    file.write_text("")
    with an_index(readers) as trees, pytest.raises(InvalidArgumentError) as caught:
        trees.find(PROJECT, root.format(file=file))
    assert (caught.value.reason, caught.value.field) == ("PROJECT_ROOT_INVALID", "project_root")


def test_a_root_whose_name_is_no_utf8_is_found_as_it_is_shown(
    readers: Readers, tmp_path: Path
) -> None:
    raw = os.fsencode(tmp_path) + b"/bad\xffname"
    root = Path(os.fsdecode(raw))
    root.mkdir()
    (root / "a.py").write_text("def one(): pass\n")
    with an_index(readers) as trees:
        live = trees.find(PROJECT, f"{tmp_path}/bad\\xffname")
        found = answer(live, lambda graph: find_symbols(graph, "one"))
        assert found.value.definitions


def test_a_tree_that_cannot_be_read_says_so(readers: Readers, repository: Repository) -> None:
    repository.write(a="def one(): pass\n")
    with an_index(readers) as trees:
        live = trees.find(PROJECT, str(repository.path))
        live.tree.look().result()
        shutil.rmtree(repository.path)
        found = answer(live, lambda graph: find_symbols(graph, "one"))
        assert found.state.freshness == code_pb2.FRESHNESS_BEHIND
        assert "could not be looked at" in found.state.note
