"""What Prometheus reads at `/metrics`: how long requests and the stages of answers take, and how many are refused."""

from collections.abc import Mapping

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest

MEDIA_TYPE = CONTENT_TYPE_LATEST

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Metrics:
    """The figures of one app; safe from any thread."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.requests = Histogram(
            "stemma_request_seconds",
            "Time to the end of a response.",
            ("method", "route", "status"),
            buckets=_SECONDS,
            registry=self._registry,
        )
        self.in_flight = Gauge("stemma_requests_in_flight", "Requests being worked on or waiting.", registry=self._registry)
        self.refused = Counter("stemma_requests_refused", "Requests refused because too many waited.", registry=self._registry)
        self.stages = Histogram(
            "stemma_stage_seconds", "Time of a stage of an answer.", ("operation", "stage"), buckets=_SECONDS, registry=self._registry
        )

    def observe_stages(self, operation: str, latency_ms: Mapping[str, float]) -> None:
        """Note how long each stage took."""
        for stage, milliseconds in latency_ms.items():
            self.stages.labels(operation, stage).observe(milliseconds / 1000)

    def exposition(self) -> bytes:
        """The text that Prometheus reads."""
        return generate_latest(self._registry)
