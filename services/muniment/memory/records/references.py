"""Reference documents: texts with metadata, that people and programs put there."""

from __future__ import annotations

from muniment.kit.errors import NotFoundError, TamperedError
from muniment.kit.store import Reader, Writer
from muniment.memory.records.order import next_order
from muniment.memory.records.schema import REFERENCES
from muniment.memory.records.totals import Cap, add_to_totals, size_of_reference
from muniment.v1 import records_pb2, store_pb2

__all__ = ["delete_reference", "known_reference", "list_references", "put_reference"]

_KIND = records_pb2.RECORD_KIND_REFERENCE


def put_reference(writer: Writer, cap: Cap, reference: records_pb2.ReferenceDocument) -> bool:
    """Keep the document in the place of the one before; whether there was none.

    Raises:
        LimitError: The tenant's cap.
    """
    try:
        before = writer.get(REFERENCES, reference.key)
    except TamperedError:
        before = None
    stored = store_pb2.StoredReference(reference=reference, order=next_order(writer))
    writer.put(REFERENCES, reference.key, value=stored)
    grown = size_of_reference(reference) - (size_of_reference(before.reference) if before else 0)
    add_to_totals(writer, cap, grown_bytes=grown, kind=_KIND, count=0 if before else 1)
    return before is None


def known_reference(reader: Reader, keys: list[str]) -> records_pb2.ReferenceDocument:
    """The document of one of these keys, likeliest first.

    Raises:
        NotFoundError: There is none.
        TamperedError: It cannot be believed.
    """
    for key in keys:
        stored = reader.get(REFERENCES, key)
        if stored is not None:
            return stored.reference
    raise NotFoundError(
        f"reference {keys[0]:.100} not found",
        reason="RECORD_UNKNOWN",
        fix="`muniment records references` lists what there is",
    )


def list_references(reader: Reader) -> records_pb2.ListReferencesResponse:
    """All documents without their texts, by key."""
    response = records_pb2.ListReferencesResponse()
    for _, stored in reader.survey(REFERENCES):
        if isinstance(stored, TamperedError):
            response.tampered += 1
        else:
            document = response.references.add()
            document.CopyFrom(stored.reference)
            document.body = ""
    # In a sealed store keys are in no order.
    response.references.sort(key=lambda document: document.key)
    return response


def delete_reference(writer: Writer, keys: list[str]) -> None:
    """Take the document away.

    Raises:
        NotFoundError: There is none.
    """
    reference = known_reference(writer, keys)
    writer.delete(REFERENCES, reference.key)
    grown = -size_of_reference(reference)
    add_to_totals(writer, Cap(None), grown_bytes=grown, kind=_KIND, count=-1)
