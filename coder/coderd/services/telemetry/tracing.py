"""Traces by OpenTelemetry: a span for each request, each unit of database work and, if enabled, each log line.

Off unless `--trace` or a Honeycomb key is given; only then the SDK is imported. The standard variables
(OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_HEADERS, …; OTLP over HTTP) set the destination of spans. Spans name
routes, never paths with queries, and carry no headers and bodies: no secret leaves with them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

import trio

from coder.base import log
from coder.base.version import BUILD_VERSION

if TYPE_CHECKING:
    from opentelemetry.trace import Span
    from opentelemetry.util.types import AttributeValue

    from coder.coderd.config.settings import ServerConfig
    from coder.coderd.services.foundation.context import Context

_HONEYCOMB = "https://api.honeycomb.io/v1/traces"
_REPORTS_EXCEPTIONS = False
"An exception's message may contain the values of a statement, so only its type is exported."
_FLUSH_TIME = 5.0
"Seconds for exporting the last spans when the server stops."


class Tracing:
    """Tracer of a process."""

    def __init__(self, ctx: Context) -> None:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        names: dict[str, AttributeValue] = {
            "service.name": "coderd",
            "service.version": BUILD_VERSION,
            "coder.deployment": str(ctx.deployment_id),
        }
        # Resource.create would search for installed detectors, which a frozen program does not have.
        self._provider = TracerProvider(resource=Resource(names), shutdown_on_exit=False)
        if ctx.config.trace:
            self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        key = ctx.config.trace_honeycomb_api_key.reveal()
        if key:
            exporter = OTLPSpanExporter(_HONEYCOMB, headers={"x-honeycomb-team": key})
            self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("coder", BUILD_VERSION)
        self._propagator = TraceContextTextMapPropagator()

    @contextlib.contextmanager
    def request(self, method: str, headers: Mapping[str, str]) -> Iterator[Span]:
        """Return the span of a request, which continues the caller's trace, if any (W3C Trace Context)."""
        from opentelemetry.trace import SpanKind

        context = self._propagator.extract(headers)
        attributes = {"http.request.method": method}
        with self._tracer.start_as_current_span(
            method,
            context,
            SpanKind.SERVER,
            attributes,
            record_exception=_REPORTS_EXCEPTIONS,
            set_status_on_exception=_REPORTS_EXCEPTIONS,
        ) as span:
            yield span

    @contextlib.contextmanager
    def work(self, name: str, **attributes: str) -> Iterator[None]:
        """Return a span inside the current one."""
        with self._tracer.start_as_current_span(
            name,
            attributes=attributes,
            record_exception=_REPORTS_EXCEPTIONS,
            set_status_on_exception=_REPORTS_EXCEPTIONS,
        ) as span:
            try:
                yield
            except Exception as error:
                span.set_attribute("error.type", type(error).__name__)
                raise

    def database_work(self, function: str) -> contextlib.AbstractContextManager[None]:
        """Observe database work, see `Database.observe`."""
        return self.work(f"db {function}", **{"db.system.name": "postgresql"})

    def close(self) -> None:
        """Export the remaining spans; blocks."""
        self._provider.shutdown()


def log_line(level: log.Level, at: datetime, name: str, message: str, fields: dict[str, log.LogValue]) -> None:
    """Log sink: a line becomes an event of the current span."""
    from opentelemetry.trace import get_current_span

    span = get_current_span()
    if span.is_recording():
        attributes = {
            key: value if isinstance(value, str | int | float | bool) else str(value) for key, value in fields.items()
        }
        span.add_event(message, {**attributes, "level": level, "logger": name}, int(at.timestamp() * 1e9))


def is_enabled(config: ServerConfig) -> bool:
    """Return whether the configuration names a receiver of traces."""
    return config.trace or bool(config.trace_honeycomb_api_key.reveal())


async def run(ctx: Context, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
    """Trace until the server stops; do nothing when disabled."""
    tracing = ctx.services.tracing
    if tracing is None:
        task_status.started()
        return
    observe = tracing.database_work
    ctx.db.observers.append(observe)
    with log.also(log_line) if ctx.config.trace_logs else contextlib.nullcontext():
        task_status.started()
        try:
            await trio.sleep_forever()
        finally:
            ctx.db.observers.remove(observe)
            with (
                trio.CancelScope(shield=True, deadline=trio.current_time() + _FLUSH_TIME),
                contextlib.suppress(OSError),
            ):
                await trio.to_thread.run_sync(tracing.close, abandon_on_cancel=True)
