"""What the slots service knows of its own tables."""

from __future__ import annotations

from muniment.kit.errors import TamperedError
from muniment.kit.progress import Report
from muniment.kit.store import Reader
from muniment.kit.store.findings import Findings, Kind
from muniment.kit.store.keys import KeyPart
from muniment.slots.schema import CHAINS, SNAPSHOTS
from muniment.v1 import maintenance_pb2, store_pb2

__all__ = ["SlotChecks"]

_BROKEN = maintenance_pb2.FindingKind.FINDING_KIND_REFERENCE_BROKEN


class SlotChecks:
    """Every chain is of a snapshot. There is no index."""

    def name(self, reader: Reader, table: str, key: tuple[KeyPart, ...]) -> str:
        """The row's key as a reader knows it."""
        return " ".join(map(str, key))

    def mend(self, kind: Kind, table: str, key: str) -> str | None:
        """What to do about a finding: a snapshot can always be made again."""
        if table in {SNAPSHOTS.name, CHAINS.name}:
            return (
                f"remove the snapshot with `muniment slots delete {key}`, and save the slot again"
            )
        return None

    def check_rows(
        self, reader: Reader, state: store_pb2.StoredState, findings: Findings, report: Report
    ) -> None:
        """Hold the rows against each other."""
        for key, value in reader.survey(CHAINS):
            if not isinstance(value, TamperedError) and not reader.has(SNAPSHOTS, *key):
                findings.add(_BROKEN, CHAINS.name, str(key[0]), "is of no snapshot")

    def check_index(self, findings: Findings, report: Report) -> None:
        """There is nothing that is derived from the store."""
