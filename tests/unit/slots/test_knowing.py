"""What is concluded from measures of what restores were worth."""

from __future__ import annotations

from muniment.slots.knowing import Known
from muniment.v1 import slots_pb2

PROBE, USE = slots_pb2.WORTH_SOURCE_PROBE, slots_pb2.WORTH_SOURCE_NEXT_REQUEST
YES, NO = slots_pb2.STANDING_YES, slots_pb2.STANDING_NO
NOT_KNOWN = slots_pb2.STANDING_NOT_KNOWN


def _worth(
    source: slots_pb2.WorthSource.ValueType, reused: int, restored: int = 100
) -> slots_pb2.RestoreWorth:
    return slots_pb2.RestoreWorth(
        source=source,
        reused_tokens=reused,
        restored_tokens=restored,
        prompt_tokens=restored + 10,
    )


def _standing(*worth: slots_pb2.RestoreWorth) -> slots_pb2.Standing.ValueType:
    told = Known(is_probed=True, worth=worth).all_capabilities()
    (one,) = (each for each in told if each.kind == slots_pb2.CAPABILITY_KIND_RESTORE_REUSE)
    return one.standing


def test_without_a_measure_nothing_is_known() -> None:
    assert _standing() == NOT_KNOWN


def test_a_probe_decides() -> None:
    assert _standing(_worth(PROBE, 99)) == YES
    assert _standing(_worth(PROBE, 0)) == NO


def test_a_use_can_show_that_restores_work() -> None:
    assert _standing(_worth(USE, 99)) == YES
    assert _standing(_worth(PROBE, 0), _worth(USE, 990, 1000)) == YES


def test_a_use_cannot_show_that_they_do_not() -> None:
    assert _standing(_worth(USE, 0)) == NOT_KNOWN


def test_a_longer_use_puts_a_short_probe_in_doubt() -> None:
    assert _standing(_worth(PROBE, 99), _worth(USE, 0, 5000)) == NOT_KNOWN
    assert _standing(_worth(PROBE, 99), _worth(USE, 0, 50)) == YES


def test_the_outlook_has_the_figures() -> None:
    told = Known(is_probed=True, worth=[_worth(PROBE, 0)]).restore_outlook()
    assert "whole prompt to be evaluated again" in told
    assert "0 of 100" in told


def test_turning_back_is_not_known_before_it_was_tried() -> None:
    first = Known(is_probed=False).all_capabilities()[0]
    assert (first.kind, first.standing) == (slots_pb2.CAPABILITY_KIND_PREFIX_REUSE, NOT_KNOWN)
