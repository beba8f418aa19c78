"""Random work on a working tree: what people, editors and git do to files, under a seed."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

from tests.support.code_trees import Repository

__all__ = ["Edits"]

_FOLDERS = ("", "pkg", "pkg/sub", "lib")
_NAMES = ("alpha", "beta", "gamma", "delta", "run", "make", "Base", "Shape")
_GO = "package {0}\n\nfunc {1}() {{ {2}() }}\n\ntype {3} struct {{ x int }}\n"


class Edits:
    """Changes a repository step by step."""

    def __init__(self, repository: Repository, seed: int) -> None:
        self._repository = repository
        self._root = repository.path
        self._random = random.Random(seed)
        self._branches = 0
        for _ in range(6):
            self._write()
        repository.commit()

    def step(self) -> str:
        """Change something; says what."""
        changes: list[Callable[[], None]] = [
            self._write,
            self._write,
            self._edit,
            self._edit,
            self._edit,
            self._rename,
            self._move_folder,
            self._delete,
            self._break,
            self._touch,
            self._exchange,
            self._ignore,
            self._switch,
            self._commit,
        ]
        change = self._random.choice(changes)
        change()
        return change.__name__

    def _write(self) -> None:
        folder = self._random.choice(_FOLDERS)
        ending = self._random.choice(["py", "py", "py", "go", "txt"])
        path = self._root / folder / f"m{self._random.randrange(8)}.{ending}"
        self._put(path, self._content(ending))

    def _edit(self) -> None:
        if path := self._any():
            lines = path.read_bytes().decode(errors="replace").splitlines(keepends=True)
            at = self._random.randrange(len(lines) + 1)
            lines[at : at + self._random.randrange(2)] = [self._content("py")]
            self._put(path, "".join(lines))

    def _rename(self) -> None:
        if path := self._any():
            path.rename(path.with_name(f"m{self._random.randrange(8)}{path.suffix}"))

    def _move_folder(self) -> None:
        source = self._root / "pkg"
        target = self._root / f"moved{self._random.randrange(3)}"
        if source.is_dir() and not target.exists():
            source.rename(target)

    def _delete(self) -> None:
        if path := self._any():
            path.unlink()

    def _break(self) -> None:
        if path := self._any():
            broken = self._random.choice(
                [b"def broken(:\n  class\n", b"\0\1\2", b"\xff\xfe\n", b""]
            )
            path.write_bytes(broken + path.read_bytes()[: self._random.randrange(200)])

    def _touch(self) -> None:
        if path := self._any():
            path.touch()

    def _exchange(self) -> None:
        one, other = self._any(), self._any()
        if one and other and one != other:
            contents = one.read_bytes(), other.read_bytes()
            other.write_bytes(contents[0])
            one.write_bytes(contents[1])

    def _ignore(self) -> None:
        lines = self._random.sample(["m1.py", "lib/", "*.go", "!m1.py", "moved*/"], 2)
        (self._root / ".gitignore").write_text("\n".join(lines) + "\n")

    def _commit(self) -> None:
        self._repository.commit()

    def _switch(self) -> None:
        self._repository.commit()
        if self._branches and self._random.random() < 0.6:
            branch = self._random.randrange(self._branches)
            self._repository.git("checkout", "--quiet", "--force", f"b{branch}")
        else:
            self._repository.git("checkout", "--quiet", "-b", f"b{self._branches}")
            self._branches += 1

    def _any(self) -> Path | None:
        files = sorted(
            path
            for path in self._root.rglob("*")
            if path.is_file() and ".git" not in path.relative_to(self._root).parts
        )
        return self._random.choice(files) if files else None

    def _put(self, path: Path, content: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        if self._random.random() < 0.5:
            path.write_text(content)
        else:
            # As editors save.
            new = path.with_name(f".{path.name}.new")
            new.write_text(content)
            new.replace(path)

    def _content(self, ending: str) -> str:
        a, b, c, d = self._random.sample(_NAMES, 4)
        if ending == "go":
            return _GO.format(a.lower(), b, c, d)
        module = f"m{self._random.randrange(8)}"
        return self._random.choice(
            [
                f"from {module} import {a}\n\ndef {b}(x):\n    return {a}(x)\n",
                f"import {module}\n\nclass {a}({module}.{b}):\n    def {c}(self):\n"
                f"        return self.{d}()\n",
                f"from pkg.{module} import *\n\ndef {a}():\n    y = {b}()\n    y.{c}()\n",
                f"class {a}:\n    def {b}(self): return {c}()\n    {d}: int = 1\n",
                f"# {a}\n\ndef {a}(): pass\n",
            ]
        )
