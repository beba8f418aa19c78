"""What to make of a search's verdict: the one thing that would help, and a sentence.

Both follow from the verdict alone: a stored text could be an instruction.
"""

from __future__ import annotations

from muniment.v1 import records_pb2

__all__ = ["code_name", "explain", "gate_name", "recovery"]

_RECOVERIES = {
    records_pb2.VERDICT_CODE_OK: "none",
    records_pb2.VERDICT_CODE_ABSTAINED_ON: "drop_token_and_retry",
    records_pb2.VERDICT_CODE_NEGATION_ABSTAIN: "rephrase_without_negation",
    records_pb2.VERDICT_CODE_GATED: "broaden_query",
    records_pb2.VERDICT_CODE_EMPTY_STORE: "write_first",
    records_pb2.VERDICT_CODE_NO_MATCH: "broaden_query",
}

_GATES = {
    records_pb2.GATE_COVERAGE_FLOOR: "coverage_floor",
    records_pb2.GATE_ANCHOR: "anchor_gate",
    records_pb2.GATE_PREPARATION: "prep_filter",
}

_WHY_GATED = {
    records_pb2.GATE_COVERAGE_FLOOR: "have too little of what was asked",
    records_pb2.GATE_ANCHOR: "lack the words that carry the question",
    records_pb2.GATE_PREPARATION: "are about preparing what was asked for",
}


def code_name(verdict: records_pb2.Verdict) -> str:
    """The verdict's code as the tools spell it."""
    return records_pb2.VerdictCode.Name(verdict.code).removeprefix("VERDICT_CODE_").lower()


def gate_name(verdict: records_pb2.Verdict) -> str | None:
    """The gate as the tools spell it; None where none decided."""
    return _GATES.get(verdict.gate)


def recovery(verdict: records_pb2.Verdict) -> str:
    """The one thing to do."""
    return _RECOVERIES[verdict.code]


def explain(verdict: records_pb2.Verdict, returned: int, total: int) -> str:
    """One sentence on why there are these rows, or none."""
    words = ", ".join(f"'{token}'" for token in verdict.tokens)
    match verdict.code:
        case records_pb2.VERDICT_CODE_OK:
            rest = f" of {total}" if total > returned else ""
            lacking = ", ".join(f"'{word}'" for word in verdict.unsupported)
            without = f"; no record has {lacking}" if lacking else ""
            return f"{returned}{rest} records matched{without}."
        case records_pb2.VERDICT_CODE_ABSTAINED_ON:
            if verdict.tokens_total == 1:
                return f"No record has {words}, and the query has no other word. Search by another."
            return (
                f"No record has {words}, on which the question turns. Leave it out and search"
                " again, at most twice."
            )
        case records_pb2.VERDICT_CODE_NEGATION_ABSTAIN:
            return (
                f"The question denies something ({words}), and the records that match say it."
                " Ask without the negation, and judge what comes."
            )
        case records_pb2.VERDICT_CODE_GATED:
            return (
                f"{verdict.candidates} records share words with the question, but"
                f" {_WHY_GATED.get(verdict.gate, 'are about something else')}. Use other words,"
                " or the most telling one alone."
            )
        case records_pb2.VERDICT_CODE_EMPTY_STORE:
            return "There are no records yet."
        case _:
            if not verdict.retrievers:
                return "The query has no word to search for."
            return "No record has any word of the query."
