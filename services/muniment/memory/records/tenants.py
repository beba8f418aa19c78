"""The tenants' stores: one each, in numbered generations of which one is in force.

Under the folder of records a tenant has a folder, named by a digest. In it are a folder for each
generation, with the store and its indexes, and the file `current` with the number of the one in
force. A generation with a greater number was never finished, one with a smaller is kept until the
next is replaced.
"""

from __future__ import annotations

import hashlib
import shutil
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

import structlog

from muniment.kit import faults
from muniment.kit.errors import InvalidArgumentError, PreconditionError
from muniment.kit.files import private_folder, replace_file
from muniment.kit.index.embedding import Embedder
from muniment.kit.index.following import IndexFollower
from muniment.kit.index.lexical import LexicalIndex, open_index
from muniment.kit.names import check_name
from muniment.kit.progress import Report
from muniment.kit.store import Store, Writer
from muniment.kit.stores import (
    CURRENT_FILE,
    DENSE_FOLDER,
    FIRST_GENERATION,
    LEXICAL_FILE,
    current_generation,
    generation_folder,
    generations,
)
from muniment.memory.records.dense import RecordDense, open_dense
from muniment.memory.records.indexing import RecordSource
from muniment.memory.records.schema import TOTALS, TOTALS_KEY
from muniment.memory.records.totals import believed_totals, read_totals
from muniment.v1 import store_pb2

__all__ = ["Generation", "ReplacedError", "Tenants"]

_NOBODY = "nobody"
"""The folder of an empty store, while the service runs. No digest is so short."""

_log = structlog.get_logger()


class ReplacedError(Exception):
    """The generation was replaced before the change had its turn: the next one is to have it."""


@dataclass
class Generation:
    """One generation of a tenant's records, open."""

    tenant_id: str
    number: int
    folder: Path
    store: Store
    index: LexicalIndex
    follower: IndexFollower
    dense: RecordDense | None
    """None where the host does without."""
    replaced: bool = False
    """Whether the next generation is in force. Set on the store's writer, so no later write of this
    one takes place."""

    def require_in_force(self) -> None:
        """Begin every change with this, on the store's writer.

        Raises:
            ReplacedError: The next generation is in force.
        """
        if self.replaced:
            raise ReplacedError

    def rebuild_index(self, report: Report) -> int:
        """Make the index anew, to its end. How many documents it has then."""
        documents = self.follower.rebuild_whole(self.store.read, "indexing records", report)
        if self.dense is not None:
            # It goes on in the background; search says how much it lacks.
            self.dense.follower.rebuild()
        return documents

    def close(self) -> None:
        """Close the store, and what is derived from it."""
        if self.dense is not None:
            self.dense.close()
        self.follower.close()
        self.store.close()
        self.index.close()


@dataclass
class Tenants:
    """Opens the stores of tenants, and replaces generations."""

    root: Path
    """The folder of records."""
    open_store: Callable[[Path], Store]
    """Opens the store in a folder, and makes it where there is none."""
    embedder: Embedder | None = None
    """What records are found with by meaning; None to do without."""
    _open: dict[str, Generation] = field(default_factory=dict)
    _building: set[str] = field(default_factory=set)
    """Tenants whose next generation is being built."""
    _unopened: dict[Path, str] = field(default_factory=dict)
    """By a tenant's folder why it could not be opened."""
    _replaced: list[Generation] = field(default_factory=list)
    """Generations that were replaced since the start."""
    _nobody: Generation | None = None
    """What those have who have no records."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def open_all(self) -> None:
        """Open what every tenant has in force, as far as that can be had.

        What cannot be opened, or does not say whose it is, waits until its tenant calls; the others
        go on.
        """
        _remove(self.root / _NOBODY)
        folders = sorted(self.root.iterdir()) if self.root.exists() else []
        for folder in folders:
            try:
                if current_generation(folder) is not None:
                    self._open_folder(folder, None)
                elif generations(folder):
                    self._unopened[folder] = f"{CURRENT_FILE} is not there"
            except Exception as error:
                self._unopened[folder] = str(error) or type(error).__name__
                _log.exception("records cannot be opened", folder=str(folder))

    def all(self) -> list[Generation]:
        """What is open, by tenant."""
        with self._lock:
            return [self._open[tenant_id] for tenant_id in sorted(self._open)]

    def unopened(self) -> dict[Path, str]:
        """The folders of tenants whose records could not be opened, and why."""
        with self._lock:
            return dict(sorted(self._unopened.items()))

    def of(self, tenant_id: str) -> Generation:
        """What the tenant has in force; made where the tenant is new.

        Raises:
            InvalidArgumentError: There is no tenant in the call's context, or it is no name.
        """
        found = self._open.get(tenant_id)
        if found is not None:
            return found
        if not check_name("tenant_id", tenant_id):
            raise InvalidArgumentError(
                "is empty",
                reason="TENANT_MISSING",
                field="tenant_id",
                fix="send the tenant in the call's context",
            )
        with self._lock:
            return self._open.get(tenant_id) or self._make(tenant_id)

    def find(self, tenant_id: str) -> Generation:
        """As `of`, for who only reads: one without records has an empty store, and no folder.

        Raises:
            InvalidArgumentError: As `of`.
        """
        if tenant_id in self._open or not check_name("tenant_id", tenant_id):
            return self.of(tenant_id)
        folder = self.root / _digest(tenant_id)
        if current_generation(folder) is not None or generations(folder):
            return self.of(tenant_id)
        with self._lock:
            if self._nobody is None:
                place = self.root / _NOBODY
                _remove(place)
                folder = generation_folder(place, 0)
                self._nobody = self._open_generation(folder, 0, _NOBODY, with_dense=False)
            return replace(self._nobody, tenant_id=tenant_id)

    def begin_next(self, present: Generation) -> Generation:
        """An empty generation beside the present one, which is not in force yet.

        Raises:
            PreconditionError: One is being built already, or came into force meanwhile.
        """
        with self._lock:
            if present.replaced or present.tenant_id in self._building:
                raise PreconditionError(
                    "these records are being replaced already",
                    reason="REPLACEMENT_UNDER_WAY",
                    fix="wait until the other import has ended, then call again",
                )
            self._building.add(present.tenant_id)
        try:
            number = present.number + 1
            folder = generation_folder(present.folder.parent, number)
            _remove(folder)
            return self._open_generation(folder, number, present.tenant_id)
        except BaseException:
            self._end_building(present.tenant_id)
            raise

    def put_in_force(self, present: Generation, following: Generation) -> None:
        """Let the next generation take the present one's place: called on the present's writer."""
        faults.reach("generation.carried")
        replace_file(present.folder.parent / CURRENT_FILE, f"{following.number}\n".encode())
        faults.reach("generation.in_force")
        present.replaced = True
        with self._lock:
            self._open[present.tenant_id] = following
            self._building.discard(present.tenant_id)

    def leave(self, replaced: Generation) -> None:
        """Remove what was before a generation that was replaced; and close this one at the end.

        Who began to read from it may go on. Its dense index, which would write on, ends at once.
        """
        with self._lock:
            self._replaced.append(replaced)
        if replaced.dense is not None:
            replaced.dense.close()
        self.remove_replaced(replaced)

    def remove_replaced(self, present: Generation) -> None:
        """Remove the generations before this one."""
        _remove_before(present.number, present.folder.parent)

    def give_up(self, following: Generation) -> None:
        """Remove a generation that does not come into force."""
        following.close()
        _remove(following.folder)
        self._end_building(following.tenant_id)

    def _end_building(self, tenant_id: str) -> None:
        with self._lock:
            self._building.discard(tenant_id)

    def close(self) -> None:
        """Close all."""
        with self._lock:
            while self._open:
                self._open.popitem()[1].close()
            if self._nobody is not None:
                self._nobody.close()
                _remove(self._nobody.folder.parent)
            while self._replaced:
                self._replaced.pop().close()

    def _make(self, tenant_id: str) -> Generation:
        folder = private_folder(self.root / _digest(tenant_id))
        if current_generation(folder) is None:
            if set(generations(folder)) - {FIRST_GENERATION}:
                raise PreconditionError(
                    f"{folder / CURRENT_FILE}, which says which generation is in force, is gone",
                    reason="STORE_UNREADABLE",
                    fix="`muniment restore` brings back a backup",
                )
            # A first one that is there was not finished, and is empty; or the file was lost.
            made = self._open_generation(
                generation_folder(folder, FIRST_GENERATION), FIRST_GENERATION, tenant_id
            )
            replace_file(folder / CURRENT_FILE, f"{FIRST_GENERATION}\n".encode())
            self._open[tenant_id] = made
            self._unopened.pop(folder, None)
            return made
        return self._open_folder(folder, tenant_id)

    def _open_folder(self, folder: Path, tenant_id: str | None) -> Generation:
        number = current_generation(folder)
        assert number is not None
        for other, path in generations(folder).items():
            if other > number:
                _log.info("an unfinished generation of records is removed", folder=str(path))
                _remove(path)
        _remove_before(number - 1, folder)
        found = self._open_generation(generation_folder(folder, number), number, tenant_id)
        self._open[found.tenant_id] = found
        self._unopened.pop(folder, None)
        return found

    def _open_generation(
        self, folder: Path, number: int, tenant_id: str | None, *, with_dense: bool = True
    ) -> Generation:
        with ExitStack() as opened:
            store = self.open_store(private_folder(folder) / "store")
            opened.callback(store.close)
            if tenant_id is None:
                tenant_id = _tenant_of(store, folder.parent)
            else:
                store.write(lambda writer: _name_tenant(writer, tenant_id)).result()
            index = open_index(folder / LEXICAL_FILE, sealed=store.protection.sealed)
            opened.callback(index.close)
            follower = IndexFollower(index, RecordSource())
            opened.callback(follower.close)
            store.follow(follower)
            dense = None
            if self.embedder is not None and with_dense:
                dense = open_dense(store, folder / DENSE_FOLDER, self.embedder)
            opened.pop_all()
        return Generation(tenant_id, number, folder, store, index, follower, dense)


def _tenant_of(store: Store, folder: Path) -> str:
    """Whose records are in the store of that tenant's folder.

    Raises:
        PreconditionError: It does not say, or says another's.
        TamperedError: What it says cannot be believed.
    """
    with store.read() as reader:
        tenant_id = read_totals(reader).tenant_id
    if _digest(tenant_id) != folder.name:
        raise PreconditionError(
            f"{folder} does not say whose records it has",
            reason="STORE_IN_DOUBT",
            fix="call for its tenant, or bring back a backup with `muniment restore`",
        )
    return tenant_id


def _name_tenant(writer: Writer, tenant_id: str) -> None:
    totals = believed_totals(writer)
    if totals.tenant_id != tenant_id:
        named = store_pb2.StoredRecordTotals()
        named.CopyFrom(totals)
        named.tenant_id = tenant_id
        writer.put(TOTALS, TOTALS_KEY, value=named)


def _digest(tenant_id: str) -> str:
    return hashlib.sha256(tenant_id.encode()).hexdigest()[:32]


def _remove_before(number: int, folder: Path) -> None:
    for other, path in generations(folder).items():
        if other < number:
            _remove(path)


def _remove(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)
