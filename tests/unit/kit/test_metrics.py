"""What a service counts."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from muniment.kit.metrics import Metrics
from tests.support.metrics import samples


def test_ends_are_counted_by_method_and_code() -> None:
    metrics = Metrics("memory")
    metrics.ended("/m.S/A", "OK", 0.25)
    metrics.ended("/m.S/A", "OK", 0.5)
    metrics.ended("/m.S/A", "NOT_FOUND", 0.0)
    found = samples(metrics.render())
    assert found["muniment_rpc_calls_total", "/m.S/A", "OK"] == 2
    assert found["muniment_rpc_calls_total", "/m.S/A", "NOT_FOUND"] == 1
    assert found["muniment_rpc_seconds_count", "/m.S/A", ""] == 3
    assert found["muniment_rpc_seconds_sum", "/m.S/A", ""] == 0.75


def test_running_calls_go_up_and_down() -> None:
    metrics = Metrics("memory")
    metrics.add_running(1)
    metrics.add_running(1)
    metrics.add_running(-1)
    assert samples(metrics.render())["muniment_rpc_running", "", ""] == 1


def test_processes_of_one_test_do_not_share_a_registry() -> None:
    first, second = Metrics("memory"), Metrics("memory")
    first.ended("/m.S/A", "OK", 0.1)
    assert ("muniment_rpc_calls_total", "/m.S/A", "OK") not in samples(second.render())


def test_every_sample_names_the_service() -> None:
    metrics = Metrics("worker")
    metrics.ended("/m.S/A", "OK", 0.1)
    for family in text_string_to_metric_families(metrics.render()):
        assert family.documentation
        assert all(sample.labels["service"] == "worker" for sample in family.samples)
