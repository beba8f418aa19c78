"""What a service counts, in Prometheus form."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

__all__ = ["Metrics"]


class Metrics:
    """The metrics of one process, in a registry of their own."""

    def __init__(self, service: str) -> None:
        self._registry = CollectorRegistry()
        self._service = service
        self.calls = Counter(
            "muniment_rpc_calls_total",
            "Calls that ended, by method and gRPC code.",
            ("service", "method", "code"),
            registry=self._registry,
        )
        self.seconds = Histogram(
            "muniment_rpc_seconds",
            "Seconds from a call's arrival to its end, by method.",
            ("service", "method"),
            registry=self._registry,
        )
        self.running = Gauge(
            "muniment_rpc_running",
            "Calls that are running now.",
            ("service",),
            registry=self._registry,
        )

    def ended(self, method: str, code: str, seconds: float) -> None:
        """Count a call that ended."""
        self.calls.labels(self._service, method, code).inc()
        self.seconds.labels(self._service, method).observe(seconds)

    def add_running(self, change: int) -> None:
        """Count a call that began (1) or ended (-1)."""
        self.running.labels(self._service).inc(change)

    def render(self) -> str:
        """All metrics in the Prometheus text format."""
        return generate_latest(self._registry).decode()
