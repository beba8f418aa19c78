"""A home's key: what its stores are checked or sealed with. It lives outside the home.

Who copies a home does not have its key, and cannot write rows that pass for the host's own. The
key is a file in the user's configuration folder, or, where the setting says so, in the OS
keyring. It is found by the home's id, so that a home may be moved; and by the user's folder as
the system knows it, since harnesses strip environments.

While a key is being changed there are two, the present and the next one. Each store says under
which of them it is, so either opens what it belongs to until the change is done.
"""

from __future__ import annotations

import hashlib
import json
import os
import pwd
import re
import sys
from base64 import b64decode, b64encode
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from muniment.kit.errors import PreconditionError
from muniment.kit.files import hold_file, private_folder, replace_file, sync_folder
from muniment.kit.paths import Home, user_path
from muniment.kit.randomness import Randomness
from muniment.kit.store.protection import KEY_BYTES, Protection, key_id
from muniment.v1 import store_pb2

__all__ = ["HomeKey", "KeyShelf"]

_ID_BYTES = 16
_PSEUDONYM_BYTES = 5
_KEYRING_SERVICE = "muniment"
_NEXT = ".next"

_MAKING = "key.lock"
"""Held in the runtime folder by who makes the home's key."""
_KEY_ID = re.compile("[0-9a-f]{16}")


@dataclass(frozen=True)
class HomeKey:
    """A key, and whether stores are sealed with it or only checked."""

    key: bytes = field(repr=False)
    sealed: bool

    @property
    def key_id(self) -> str:
        """The key's name; not a secret."""
        return key_id(self.key)

    @classmethod
    def make(cls, randomness: Randomness, *, sealed: bool) -> HomeKey:
        """A new key."""
        return cls(randomness.token(KEY_BYTES), sealed)

    def opens(self, stored: store_pb2.StoredSchema) -> bool:
        """Whether the store says that it is under this key."""
        return (stored.key_id, stored.sealed) == (self.key_id, self.sealed)

    def pseudonym(self, text: str) -> str:
        """A short name for the text, which without the key tells nothing about it."""
        digest = hashlib.blake2b(
            text.encode(errors="surrogatepass"),
            key=self.key,
            digest_size=_PSEUDONYM_BYTES,
            person=b"pseudonym",
        )
        return f"~{digest.hexdigest()}"

    def protection(self, randomness: Randomness) -> Protection:
        """What it makes of the rows of a store."""
        return Protection(self.key, self.sealed, randomness)

    def to_text(self) -> str:
        """The key as it is kept."""
        return json.dumps({"key": b64encode(self.key).decode(), "sealed": self.sealed})

    @classmethod
    def from_text(cls, text: str, where: str) -> HomeKey:
        """The key that was kept.

        Raises:
            PreconditionError: The text is damaged.
        """
        try:
            kept = json.loads(text)
            key = b64decode(kept["key"], validate=True)
            if len(key) != KEY_BYTES:
                raise ValueError("wrong length")
            return cls(key, bool(kept["sealed"]))
        except (ValueError, KeyError, TypeError):
            # Without the cause, which may quote the key.
            raise PreconditionError(
                f"the home's key in {where} is damaged",
                reason="KEY_DAMAGED",
                fix="bring back a copy of it",
            ) from None


class KeyShelf:
    """Where the keys of one home are kept."""

    def __init__(self, home: Home, key_store: str, folder: str) -> None:
        """`key_store` is `file` or `keyring`; `folder` replaces the user's own where given.

        Raises:
            PreconditionError: The folder cannot be the right one.
        """
        self._home = home
        self._drawer: _Drawer = (
            _Keyring() if key_store == "keyring" else _Files(_key_folder(home, folder))
        )

    @property
    def where(self) -> str:
        """Where the key is, for people."""
        home_id = self._home_id()
        return self._drawer.place if home_id is None else self._drawer.where(home_id)

    def load(self) -> HomeKey | None:
        """The home's present key, or None where it has none.

        Raises:
            PreconditionError: It is damaged or cannot be read.
        """
        return self._load("")

    def load_next(self) -> HomeKey | None:
        """The key of a change that has begun and is not finished, or None.

        Raises:
            PreconditionError: As `load`.
        """
        return self._load(_NEXT)

    def load_for(self, stored: store_pb2.StoredSchema) -> HomeKey:
        """The key that the store says it is under; the present one where none is.

        Raises:
            PreconditionError: There is no key, or as `load`.
        """
        found = [one for one in (self.load(), self.load_next()) if one is not None]
        if not found and self._home_id() is None:
            raise PreconditionError(
                f"{self._id_file()} is missing, which says which key is this home's",
                reason="KEY_MISSING",
                fix="bring back a copy of it; it is the name of the key's file, without its end",
            )
        if not found:
            raise self._missing()
        return next((one for one in found if one.opens(stored)), found[0])

    def load_or_make(
        self, randomness: Randomness, stored: store_pb2.StoredSchema | None
    ) -> HomeKey:
        """The key of the store; a new one for a home that never had one.

        Raises:
            PreconditionError: The home has a key, which is not there, or as `load`.
        """
        if stored is not None and stored.key_id:
            return self.load_for(stored)
        # The services of a new home start at once, and must not make a key each.
        private_folder(self._home.runtime)
        with hold_file(self._home.runtime / _MAKING, wait=True):
            found = self.load() or self.load_next()
            if found is None and self._home_id() is not None:
                # It may be a sealed home: another key would let its next words stand in the clear.
                raise self._missing()
            if found is None:
                found = HomeKey.make(randomness, sealed=False)
                self.keep(found, randomness)
        return found

    def _missing(self) -> PreconditionError:
        return PreconditionError(
            f"the key of this home is missing: it should be in {self.where}",
            reason="KEY_MISSING",
            fix="bring back a copy of it, or the setting that says where it is",
        )

    def keep(self, key: HomeKey, randomness: Randomness) -> None:
        """Keep the key of a home whose data, if it has any, are under it.

        Raises:
            PreconditionError: It cannot be kept.
        """
        self._write("", key, randomness)

    def prepare(self, key: HomeKey, randomness: Randomness) -> None:
        """Keep the next key beside the present one.

        Raises:
            PreconditionError: It cannot be kept.
        """
        self._write(_NEXT, key, randomness)

    def promote(self, randomness: Randomness) -> None:
        """Make the next key the present one, and the present one an earlier one.

        Earlier keys open the backups that were made under them.

        Raises:
            PreconditionError: It cannot be kept.
        """
        key, before = self.load_next(), self.load()
        if key is None:
            return
        if before is not None and before != key:
            self._write(_earlier(before.key_id), before, randomness)
        self.keep(key, randomness)
        self.abandon()

    def abandon(self) -> None:
        """Forget the next key, which no store is under unless it is the present one too."""
        self._drawer.remove(f"{self._home_id()}{_NEXT}")

    def find(self, stored: store_pb2.StoredSchema) -> HomeKey | None:
        """The key that a store says it is under: of this home, an earlier one, or another home's.

        Raises:
            PreconditionError: The keys cannot be read.
        """
        # It is part of a name, and the store may be anybody's.
        if not _KEY_ID.fullmatch(stored.key_id):
            return None
        own = (self._load(which) for which in ("", _NEXT, _earlier(stored.key_id)))
        for key in (*own, *self._of_other_homes()):
            if key is not None and key.opens(stored):
                return key
        return None

    def _of_other_homes(self) -> Iterator[HomeKey]:
        for where, text in self._drawer.texts():
            with suppress(PreconditionError):  # A damaged one is another home's concern.
                yield HomeKey.from_text(text, where)

    def _load(self, which: str) -> HomeKey | None:
        home_id = self._home_id()
        if home_id is None:
            return None
        name = f"{home_id}{which}"
        text = self._drawer.read(name)
        return None if text is None else HomeKey.from_text(text, self._drawer.where(name))

    def _write(self, which: str, key: HomeKey, randomness: Randomness) -> None:
        known = self._home_id()
        home_id = known or randomness.token(_ID_BYTES).hex()
        # The key first: a home that has an id has a key.
        self._drawer.write(f"{home_id}{which}", key.to_text())
        if known is None:
            private_folder(self._home.path, keep_mode=True)
            replace_file(self._id_file(), home_id.encode() + b"\n")

    def _id_file(self) -> Path:
        return self._home.path / "home.id"

    def _home_id(self) -> str | None:
        """The home's id, or None where it has none yet.

        Raises:
            PreconditionError: It cannot be read.
        """
        try:
            kept = self._id_file().read_text().strip()
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise _unreadable(f"the home's id in {self._id_file()}", error) from error
        # It becomes a file's name.
        if len(kept) != 2 * _ID_BYTES or not kept.isalnum():
            raise _unreadable(f"the home's id in {self._id_file()}", ValueError("damaged"))
        return kept


def _earlier(identity: str) -> str:
    return f".{identity}"


class _Drawer(Protocol):
    """Keeps texts by name."""

    @property
    def place(self) -> str:
        """Where the texts are, for people."""
        ...

    def where(self, name: str) -> str:
        """Where the text is, for people."""
        ...

    def read(self, name: str) -> str | None:
        """The text, or None."""
        ...

    def write(self, name: str, text: str) -> None:
        """Keep the text in place of the one before."""
        ...

    def remove(self, name: str) -> None:
        """Forget the text."""
        ...

    def texts(self) -> Iterator[tuple[str, str]]:
        """All texts that can be listed, each with where it is."""
        ...


class _Files:
    """Keys as files of a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def place(self) -> str:
        return str(self._folder)

    def where(self, name: str) -> str:
        return str(self._file(name))

    def read(self, name: str) -> str | None:
        try:
            return self._file(name).read_text()
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise _unreadable(f"the home's key in {self._file(name)}", error) from error

    def write(self, name: str, text: str) -> None:
        # It may be one that the user has for more; what is kept in it is private by itself.
        private_folder(self._folder, keep_mode=True)
        try:
            replace_file(self._file(name), text.encode() + b"\n")
        except OSError as error:
            raise _unwritable(self.where(name), error.strerror or str(error)) from error

    def remove(self, name: str) -> None:
        self._file(name).unlink(missing_ok=True)
        sync_folder(self._folder)

    def texts(self) -> Iterator[tuple[str, str]]:
        for path in sorted(self._folder.glob("*.key")):
            text = self.read(path.stem)
            if text is not None:
                yield str(path), text

    def _file(self, name: str) -> Path:
        return self._folder / f"{name}.key"


class _Keyring:
    """Keys in the OS keyring, which does not list what it has."""

    place = "the OS keyring"

    def where(self, name: str) -> str:
        return f"the OS keyring, as {_KEYRING_SERVICE}/{name}"

    def read(self, name: str) -> str | None:
        import keyring  # It looks for the desktop's services when it is imported.

        with _keyring_errors():
            return keyring.get_password(_KEYRING_SERVICE, name)

    def write(self, name: str, text: str) -> None:
        import keyring

        with _keyring_errors():
            keyring.set_password(_KEYRING_SERVICE, name, text)

    def remove(self, name: str) -> None:
        import keyring

        with _keyring_errors():
            keyring.delete_password(_KEYRING_SERVICE, name)

    def texts(self) -> Iterator[tuple[str, str]]:
        yield from ()


@contextmanager
def _keyring_errors() -> Iterator[None]:
    from keyring.errors import KeyringError

    try:
        yield
    except KeyringError as error:
        raise PreconditionError(
            f"the OS keyring cannot be used: {error}",
            reason="KEY_UNREADABLE",
            fix='unlock it, or set key_store = "file"',
        ) from error


def _key_folder(home: Home, folder: str) -> Path:
    if not folder:
        return _user_key_folder()
    path = user_path(folder)
    if not path.is_absolute() or path.resolve().is_relative_to(home.path):
        raise PreconditionError(
            f"{folder} is not an absolute path outside the home {home.path}",
            reason="SETTING_INVALID",
            field="key_folder",
            fix="choose another folder: whoever copies the home must not get its key",
        )
    return path


def _user_key_folder() -> Path:
    # By the password database: services must find it whatever the environment they came from.
    try:
        user = Path(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError as error:
        raise PreconditionError(
            f"the system knows no user {os.getuid()}, and so no folder for the key",
            reason="KEY_UNREADABLE",
            fix="set MUNIMENT_KEY_FOLDER to an absolute path outside the home",
        ) from error
    if sys.platform == "darwin":
        return user / "Library" / "Application Support" / "muniment-keys"
    return user / ".config" / "muniment" / "keys"


def _unreadable(what: str, error: Exception) -> PreconditionError:
    why = error.strerror if isinstance(error, OSError) else "it is damaged"
    return PreconditionError(
        f"{what} cannot be read: {why}",
        reason="KEY_UNREADABLE",
        fix="let its owner read it (mode 0600), or bring back a copy of it",
    )


def _unwritable(where: str, why: str) -> PreconditionError:
    return PreconditionError(
        f"the key cannot be kept in {where}: {why}",
        reason="KEY_UNWRITABLE",
        fix="make room, or choose another folder with the setting key_folder",
    )
