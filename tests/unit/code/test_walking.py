"""Which files a tree has."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from muniment.code import git
from muniment.code.walking import list_files, list_folders
from tests.support.code_trees import Repository


def _files(root: Path) -> set[str]:
    return set(list_files(os.fsencode(root)).files)


def _without_git(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")


def test_tracked_and_new_files_are_there_and_ignored_ones_are_not(repository: Repository) -> None:
    repository.write(tracked="", sub__tracked="", made__out="", sub__kept="", sub__gone="")
    (repository.path / ".gitignore").write_text("made/\n*.log\nkept.py\n")
    (repository.path / "sub/.gitignore").write_text("!kept.py\ngone.py\n")
    repository.commit()
    repository.write(new="", sub__new="")
    (repository.path / "a.log").write_text("")
    assert _files(repository.path) == {
        ".gitignore",
        "tracked.py",
        "sub/.gitignore",
        "sub/tracked.py",
        "sub/kept.py",
        "new.py",
        "sub/new.py",
    }


def test_the_users_and_the_repositorys_own_excludes_count(
    repository: Repository, tmp_path: Path
) -> None:
    excludes = tmp_path / "home/.config/git/ignore"
    excludes.parent.mkdir(parents=True)
    excludes.write_text("*.mine\n")
    (repository.path / ".git/info/exclude").write_text("*.ours\n")
    for name in ("a.mine", "a.ours", "a.py"):
        (repository.path / name).write_text("")
    assert _files(repository.path) == {"a.py"}


def test_a_file_that_is_deleted_or_kept_out_of_the_index_is_as_git_has_it(
    repository: Repository,
) -> None:
    repository.write(gone="", ignored="")
    (repository.path / ".gitignore").write_text("ignored.py\n")
    repository.git("add", "--force", "--all", ".")
    repository.git("add", "--force", "ignored.py")
    (repository.path / "gone.py").unlink()
    assert _files(repository.path) == {".gitignore", "ignored.py"}


def test_links_are_not_followed(repository: Repository, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.py").write_text("")
    repository.write(real__one="")
    repository.commit()
    (repository.path / "link.py").symlink_to(outside / "secret.py")
    (repository.path / "folder").symlink_to(outside)
    shutil.move(repository.path / "real", tmp_path / "moved")
    (repository.path / "real").symlink_to(tmp_path / "moved")
    assert _files(repository.path) == set()


def test_a_pipe_is_no_file(repository: Repository) -> None:
    os.mkfifo(repository.path / "pipe.py")
    assert _files(repository.path) == set()


def test_a_submodule_is_part_of_the_tree_and_another_repository_is_not(
    repository: Repository, tmp_path: Path
) -> None:
    module = Repository(tmp_path / "module")
    module.write(inner="", deep__inner="")
    module.commit()
    repository.git(
        *("-c", "protocol.file.allow=always", "submodule", "--quiet", "add"),
        *(str(module.path), "vendor/module"),
    )
    (repository.path / "vendor/module/new.py").write_text("")
    repository.write(own="")
    repository.commit()
    Repository(repository.path / "nested").write(other="")
    repository.git("worktree", "add", "--quiet", "inside", "-b", "branch")
    assert _files(repository.path) == {
        ".gitmodules",
        "own.py",
        "vendor/module/inner.py",
        "vendor/module/deep/inner.py",
        "vendor/module/new.py",
    }
    assert _files(repository.path / "inside") == {".gitmodules", "own.py"}


def test_a_submodule_that_was_not_fetched_has_no_files(
    repository: Repository, tmp_path: Path
) -> None:
    module = Repository(tmp_path / "module")
    module.write(inner="")
    module.commit()
    repository.git(
        "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(module.path), "m"
    )
    repository.git("submodule", "--quiet", "deinit", "--force", "m")
    assert _files(repository.path) == {".gitmodules"}


def test_strange_names_are_shown_on_one_line_and_found_again(repository: Repository) -> None:
    names = [
        b"-rf.py",
        b"--output=x.py",
        b":(top)a.py",
        b"a\nb.py",
        b"q\"uote's.py",
        b"bad\xff.py",
        "ünï.py".encode(),
        "right\u202eleft.py".encode(),
        b"*.py",
    ]
    root = os.fsencode(repository.path)
    for name in names:
        os.close(os.open(root + b"/" + name, os.O_CREAT | os.O_WRONLY))
    listing = list_files(root)
    assert sorted(map(listing.raw, listing.files)) == sorted(names)
    assert all(path.isprintable() for path in listing.files)
    assert {"bad\\xff.py", "a\\nb.py", "ünï.py", "right\\u202eleft.py"} <= set(listing.files)


def test_a_repository_gets_no_code_run(repository: Repository, tmp_path: Path) -> None:
    """Whatever its configuration and hooks say, and whatever our own environment does."""
    trap = tmp_path / "trap"
    sprung = tmp_path / "sprung"
    trap.write_text(f"#!/bin/sh\ntouch '{sprung}'\n")
    trap.chmod(0o755)
    repository.write(a="")
    repository.commit()
    for name, value in (
        ("core.fsmonitor", str(trap)),
        ("core.pager", str(trap)),
        ("pager.ls-files", "true"),
        ("alias.ls-files", f"!{trap}"),
        ("core.sshCommand", str(trap)),
        ("core.hooksPath", str(tmp_path)),
        ("filter.x.process", str(trap)),
        ("diff.external", str(trap)),
    ):
        repository.git("config", name, value)
    (repository.path / ".gitattributes").write_text("* filter=x\n")
    for hook in ("post-index-change", "fsmonitor-watchman", "reference-transaction"):
        shutil.copy(trap, tmp_path / hook)
        shutil.copy(trap, repository.path / ".git/hooks" / hook)
    assert _files(repository.path) == {".gitattributes", "a.py"}
    assert not sprung.exists()


def test_variables_of_our_own_git_do_not_lead_astray(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Repository(tmp_path / "other")
    other.write(theirs="")
    other.commit()
    repository.write(ours="")
    monkeypatch.setenv("GIT_DIR", str(other.path / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other.path))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other.path / ".git/index"))
    assert _files(repository.path) == {"ours.py"}


def test_a_broken_repository_is_walked_and_said_so(repository: Repository) -> None:
    repository.write(a="")
    shutil.rmtree(repository.path / ".git/objects")
    (repository.path / ".git/HEAD").unlink()
    listing = list_files(os.fsencode(repository.path))
    assert set(listing.files) == {"a.py"}
    assert "git" in listing.note


def test_without_git_ignore_files_and_custom_decide(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    repository.write(
        a="",
        made__out="",
        sub__kept="",
        sub__gone="",
        node_modules__x="",
        env__lib="",
        nested__x="",
    )
    repository.write(target__x="", sub__deep__only="", sub__deep__other="")
    (repository.path / ".hidden.py").write_text("")
    (repository.path / "env/pyvenv.cfg").write_text("")
    (repository.path / "target/CACHEDIR.TAG").write_text("")
    (repository.path / ".gitignore").write_text("made/\nkept.py\n/sub/deep/*\n!/sub/deep/only.py\n")
    (repository.path / "sub/.gitignore").write_text("!kept.py\ngone.py\n")
    (repository.path / "nested/.git").mkdir()
    (repository.path / "link").symlink_to(tmp_path)
    _without_git(monkeypatch)
    listing = list_files(os.fsencode(repository.path))
    assert set(listing.files) == {"a.py", "sub/kept.py", "sub/deep/only.py"}
    assert "not installed" in listing.note


def test_a_folder_that_is_no_repository_has_no_note(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("")
    listing = list_files(os.fsencode(tmp_path))
    assert (set(listing.files), listing.note, listing.by_git) == ({"a.py"}, "", False)


def test_folders_where_files_could_come_to_be(repository: Repository) -> None:
    repository.write(a__b__one="", ignored__x="")
    (repository.path / ".gitignore").write_text("ignored/\n")
    (repository.path / "empty/inner").mkdir(parents=True)
    root = os.fsencode(repository.path)
    found = {one[len(root) + 1 :] for one in list_folders(root, list_files(root))}
    assert found == {b"", b"a", b"a/b", b"empty", b"empty/inner"}


def test_a_folder_that_is_gone_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="gone"):
        list_files(os.fsencode(tmp_path / "gone"))


def test_git_says_why_it_cannot_tell(tmp_path: Path) -> None:
    with pytest.raises(git.GitError, match="not a git repository"):
        git.git_files(os.fsencode(tmp_path))
