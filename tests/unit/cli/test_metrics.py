"""Metrics of several services are one text that Prometheus takes."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from muniment.cli.metrics import _merged

ONE = """# HELP calls_total Calls.
# TYPE calls_total counter
calls_total{service="one"} 1.0
# HELP running Calls that run.
# TYPE running gauge
running{service="one"} 2.0
"""
OTHER = """# HELP calls_total Calls.
# TYPE calls_total counter
calls_total{service="other"} 3.0
# HELP own Its own.
# TYPE own gauge
own 4.0
"""


def test_a_metrics_samples_stand_in_one_place() -> None:
    merged = _merged([ONE, OTHER])
    assert merged.count("# TYPE calls_total counter") == 1
    families = list(text_string_to_metric_families(merged))
    assert [(one.name, len(one.samples)) for one in families] == [
        ("calls", 2),
        ("running", 1),
        ("own", 1),
    ]


def test_one_text_stays_as_it_is() -> None:
    assert _merged([ONE]) == ONE
    assert _merged([]) == ""
