"""What the code service knows of its own tables."""

from __future__ import annotations

from muniment.code.schema import FILES, TREES
from muniment.kit.errors import TamperedError
from muniment.kit.progress import Report
from muniment.kit.store import Reader
from muniment.kit.store.findings import Findings, Kind
from muniment.kit.store.keys import KeyPart
from muniment.v1 import maintenance_pb2, store_pb2

__all__ = ["CodeChecks"]

_BROKEN = maintenance_pb2.FindingKind.FINDING_KIND_REFERENCE_BROKEN


class CodeChecks:
    """Every file is of a tree, and is what its key says. The graph is made of the rows."""

    def name(self, reader: Reader, table: str, key: tuple[KeyPart, ...]) -> str:
        """The row's key as a reader knows it."""
        return " ".join(map(str, key))

    def mend(self, kind: Kind, table: str, key: str) -> str | None:
        """What to do about a finding: all of it can be read from the disk again."""
        if table in {TREES.name, FILES.name}:
            return "make the index anew with `muniment index --anew` in the project's folder"
        return None

    def check_rows(
        self, reader: Reader, state: store_pb2.StoredState, findings: Findings, report: Report
    ) -> None:
        """Hold the rows against each other."""
        trees = {str(key[0]) for key, _ in reader.survey(TREES) if key}
        for key, row in reader.survey(FILES):
            if isinstance(row, TamperedError):
                continue
            tree, path = map(str, key)
            if tree not in trees:
                findings.add(_BROKEN, FILES.name, f"{tree} {path}", "is of no tree")
            elif row.path != path:
                findings.add(_BROKEN, FILES.name, f"{tree} {path}", f"is of {row.path}")

    def check_index(self, findings: Findings, report: Report) -> None:
        """There is nothing that is derived from the store but in memory."""
