"""A folder belongs to a project, wherever in it one stands."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from muniment.kit.context import CallContext
from muniment.kit.errors import PreconditionError
from muniment.kit.identity import PROJECT_FILE, ProjectIdentity, resolve_project


def git(folder: Path, *words: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always"]
    subprocess.run(
        ["git", *identity, *words],
        cwd=folder,
        check=True,
        capture_output=True,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"},
    )


def a_repository(folder: Path) -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "-q")
    git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    return folder


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path.resolve()


def test_an_id_is_a_name_and_16_hex_digits(place: Path) -> None:
    identity = resolve_project(place)
    assert re.fullmatch(r"proj_[0-9a-f]{16}", identity.project_id)
    assert identity == resolve_project(place)


def test_a_folder_without_git_is_its_own_project(place: Path) -> None:
    (place / "a" / "b").mkdir(parents=True)
    identities = [resolve_project(place / name) for name in ("", "a", "a/b")]
    assert len({one.project_id for one in identities}) == 3
    assert [one.root for one in identities] == [str(place / name) for name in ("", "a", "a/b")]
    assert all(one.name is None for one in identities)


def test_everything_in_a_repository_is_one_project(place: Path) -> None:
    repository = a_repository(place / "repository")
    (repository / "packages" / "one").mkdir(parents=True)
    expected = resolve_project(repository)
    assert expected.root == str(repository)
    for name in ("packages", "packages/one", ".git", ".git/refs"):
        assert resolve_project(repository / name) == expected
    assert resolve_project(place).project_id != expected.project_id


def test_worktrees_share_the_project_and_have_roots_of_their_own(place: Path) -> None:
    repository = a_repository(place / "repository")
    git(repository, "worktree", "add", "-q", str(place / "tree"), "-b", "branch")
    (place / "tree" / "src").mkdir()
    expected = resolve_project(repository)
    for folder in (place / "tree", place / "tree" / "src"):
        identity = resolve_project(folder)
        assert identity.project_id == expected.project_id
        assert identity.root == str(place / "tree")


def test_a_worktree_with_relative_paths_shares_it_too(place: Path) -> None:
    repository = a_repository(place / "repository")
    git(repository, "worktree", "add", "-q", str(place / "tree"), "-b", "branch")
    marker = place / "tree" / ".git"
    marker.write_text("gitdir: ../repository/.git/worktrees/tree\n")
    assert resolve_project(place / "tree").project_id == resolve_project(repository).project_id


def test_a_submodule_is_a_project_of_its_own(place: Path) -> None:
    library = a_repository(place / "library")
    repository = a_repository(place / "repository")
    git(repository, "submodule", "--quiet", "add", str(library), "vendored")
    inside = resolve_project(repository / "vendored")
    assert inside.root == str(repository / "vendored")
    ids = {inside.project_id, *(resolve_project(one).project_id for one in (library, repository))}
    assert len(ids) == 3


def test_two_clones_are_two_projects(place: Path) -> None:
    repository = a_repository(place / "repository")
    git(place, "clone", "-q", str(repository), str(place / "clone"))
    clone, original = resolve_project(place / "clone"), resolve_project(repository)
    assert clone.project_id != original.project_id


def test_a_git_folder_elsewhere_is_followed(place: Path) -> None:
    (place / "work").mkdir()
    git(place, "init", "-q", f"--separate-git-dir={place}/elsewhere", "work")
    identity = resolve_project(place / "work")
    assert identity.root == str(place / "work")
    assert identity.project_id != resolve_project(place).project_id


@pytest.mark.parametrize("marker", ["", "no marker", "\xff"])
def test_a_file_that_only_looks_like_git_is_none(place: Path, marker: str) -> None:
    (place / ".git").write_text(marker, encoding="latin-1")
    assert resolve_project(place) == resolve_project_without_git(place)


def resolve_project_without_git(place: Path) -> ProjectIdentity:
    (place / ".git").unlink()
    return resolve_project(place)


def test_a_link_is_what_it_leads_to(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = a_repository(place / "real" / "repository")
    (place / "link").symlink_to(place / "real")
    expected = resolve_project(repository)
    assert resolve_project(place / "link" / "repository") == expected
    monkeypatch.chdir(place / "link" / "repository")
    assert resolve_project(Path()) == expected
    assert resolve_project(Path.cwd() / ".." / "repository") == expected


@pytest.mark.parametrize("name", ["проект", "プロジェクト é", "a b\nc", "🏠"])
def test_folders_may_have_any_name(place: Path, name: str) -> None:
    identity = resolve_project(a_repository(place / name))
    assert identity.root == str(place / name)
    context = CallContext(project_id=identity.project_id, project_root=identity.root)
    assert CallContext.from_metadata(context.to_metadata()) == context


def test_a_folder_whose_name_is_no_text_is_a_project_too(place: Path) -> None:
    names = [os.fsdecode(b"caf\xe9"), os.fsdecode(b"caf\xe8")]
    identities = [resolve_project(place / name) for name in names]
    assert identities[0].project_id != identities[1].project_id
    context = CallContext(project_id=identities[0].project_id, project_root=identities[0].root)
    assert CallContext.from_metadata(context.to_metadata()).project_root == f"{place}/caf\\xe9"


def test_a_folder_that_is_gone_is_still_somebodys(place: Path) -> None:
    assert resolve_project(place / "gone").root == str(place / "gone")


def name_project(folder: Path, text: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / PROJECT_FILE).write_text(text, encoding="utf-8")


def test_a_name_survives_a_move(place: Path) -> None:
    repository = a_repository(place / "repository")
    unnamed = resolve_project(repository)
    name_project(repository, 'project = "the shop"')
    named = resolve_project(repository)
    assert (named.name, named.root) == ("the shop", str(repository))
    assert named.project_id != unnamed.project_id
    repository.rename(place / "moved")
    moved = resolve_project(place / "moved")
    assert (moved.project_id, moved.root) == (named.project_id, str(place / "moved"))


def test_a_name_counts_without_git_and_below(place: Path) -> None:
    name_project(place / "shop", 'project = " the shop "\n')
    (place / "shop" / "a" / "b").mkdir(parents=True)
    inside = resolve_project(place / "shop" / "a" / "b")
    assert (inside.name, inside.root) == ("the shop", str(place / "shop"))
    name_project(place / "other", 'project = "the shop"')
    assert resolve_project(place / "other").project_id == inside.project_id


def test_a_name_is_no_path(place: Path) -> None:
    name_project(place / "named", f'project = "{place / "other"}"')
    (place / "other").mkdir()
    named, other = resolve_project(place / "named"), resolve_project(place / "other")
    assert named.project_id != other.project_id


@pytest.mark.parametrize("text", ["", "# nothing\n", 'title = "x"'])
def test_a_file_that_names_nothing_changes_nothing(place: Path, text: str) -> None:
    repository = a_repository(place / "repository")
    expected = resolve_project(repository)
    name_project(repository, text)
    assert resolve_project(repository) == expected


@pytest.mark.parametrize("text", ["project =", "project = x", "[", "\0"])
def test_a_file_that_is_no_toml_is_named(place: Path, text: str) -> None:
    name_project(place, text)
    with pytest.raises(PreconditionError) as refused:
        resolve_project(place / "below")
    assert refused.value.reason == "PROJECT_FILE_UNREADABLE"
    assert str(place / PROJECT_FILE) in refused.value.message


@pytest.mark.parametrize("text", ["project = 1", "project = ''", "project = ' '", "project = []"])
def test_a_name_that_is_none_is_refused(place: Path, text: str) -> None:
    name_project(place, text)
    with pytest.raises(PreconditionError) as refused:
        resolve_project(place)
    assert (refused.value.reason, refused.value.field) == ("PROJECT_NAME_INVALID", "project")


@pytest.mark.parametrize("kind", ["folder", "no utf-8"])
def test_a_file_that_cannot_be_read_is_named(place: Path, kind: str) -> None:
    if kind == "folder":
        (place / PROJECT_FILE).mkdir()
    else:
        (place / PROJECT_FILE).write_bytes(b'project = "\xff"')
    with pytest.raises(PreconditionError) as refused:
        resolve_project(place)
    assert refused.value.reason == "PROJECT_FILE_UNREADABLE"
