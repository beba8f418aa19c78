"""Reading what a service counts."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

__all__ = ["samples"]


def samples(text: str) -> dict[tuple[str, str, str], float]:
    """Values of a Prometheus text by name, method and code, which may be empty."""
    return {
        (sample.name, sample.labels.get("method", ""), sample.labels.get("code", "")): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
