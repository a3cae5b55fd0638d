"""Traces, as a collector receives them: OTLP over HTTP on loopback."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from coder.base.secret import Secret
from coder.coderd.services.telemetry import tracing
from coder.coderd.store.engine.database import Tx
from tests.kit.server.server_in_process import running_coderd

TRACE = "0af7651916cd43dd8448eb211c80319c"

KEYS: list[str] = []
"""Honeycomb's key of each request."""


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[ExportTraceServiceRequest]]:
    KEYS.clear()
    received: list[ExportTraceServiceRequest] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            KEYS.extend(self.headers.get_all("x-honeycomb-team", []))
            received.append(ExportTraceServiceRequest.FromString(body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    yield received
    server.shutdown()
    thread.join()
    server.server_close()


async def test_request_span_continues_trace(collector: list[ExportTraceServiceRequest]) -> None:
    async with running_coderd(first_user=True, trace=True, trace_logs=True) as world:
        headers = {"traceparent": f"00-{TRACE}-b7ad6b7169203331-01"}
        assert (await world.get("/api/v2/users/me?secret=hidden", headers=headers)).status_code == 200
        assert (await world.get("/api/v2/workspaces/none-such", headers=headers)).status_code == 400
        with pytest.raises(ValueError, match="hush"):
            await world.ctx.db.run(_refuse)
        token = world.token
    spans = [
        span
        for request in collector
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]
    failed = next(span for span in spans if span.name == "db _refuse")
    assert [(item.key, item.value.string_value) for item in failed.attributes][-1] == ("error.type", "ValueError")
    assert "hush" not in str(spans)
    ours = {span.name: span for span in spans if span.trace_id.hex() == TRACE}
    me = ours["GET /api/v2/users/{user}"]
    assert me.parent_span_id.hex() == "b7ad6b7169203331"
    assert {item.key: item.value.string_value or item.value.int_value for item in me.attributes}.items() >= {
        "http.request.method": "GET",
        "http.response.status_code": 200,
        "http.route": "/api/v2/users/{user}",
    }.items()
    assert any(span.name.startswith("db ") and span.parent_span_id == me.span_id for span in spans)
    assert "GET /api/v2/workspaces/{workspace}" in ours
    everything = b"".join(request.SerializeToString() for request in collector)
    assert b"hidden" not in everything and token.encode() not in everything
    assert collector[0].resource_spans[0].resource.attributes[0].value.string_value == "coderd"


async def _refuse(_tx: Tx) -> None:
    raise ValueError("this value cannot be stored: hush")


async def test_tracing_is_off_by_default(collector: list[ExportTraceServiceRequest]) -> None:
    async with running_coderd(first_user=True) as world:
        assert (await world.get("/api/v2/users/me")).status_code == 200
        assert world.ctx.db.observers == []
    assert collector == []


async def test_honeycomb_export(collector: list[ExportTraceServiceRequest], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "_HONEYCOMB", f"{os.environ['OTEL_EXPORTER_OTLP_ENDPOINT']}/v1/traces")
    async with running_coderd(trace_honeycomb_api_key=Secret("hive")) as world:
        await world.get("/api/v2/buildinfo")
    assert collector and ["hive"] * len(collector) == KEYS
