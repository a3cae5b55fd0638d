"""Metrics of a daemon for Prometheus: `--prometheus-enable` opens this listener at `--prometheus-address`.

The families are the server's for its built-in daemons. Format: Prometheus text exposition 0.0.4.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial

import h11
import trio

from coder.base.errors import CoderError
from coder.net.bounded_http import BoundedHttp
from coder.provisionerd.activity import BUCKETS, ProvisionerActivity, Timings

REQUEST_TIMEOUT = 20.0
"""Seconds for one request."""
_KIND = "text/plain; version=0.0.4; charset=utf-8"
_TIMINGS = "coderd_provisionerd_job_timings_seconds"


def metrics_text(activity: ProvisionerActivity, known: tuple[str, ...] = ("echo", "terraform")) -> str:
    """Return the current exposition; gauges of provisioners without a job are 0."""
    running = Counter(activity.jobs.values())
    lines = [
        "# HELP coderd_provisionerd_num_daemons Provisioners in this process.",
        "# TYPE coderd_provisionerd_num_daemons gauge",
        f"coderd_provisionerd_num_daemons {activity.slots}",
        "# HELP coderd_provisionerd_jobs_current Jobs that run now.",
        "# TYPE coderd_provisionerd_jobs_current gauge",
    ]
    for name in sorted({*known, *running}):
        lines.append(f'coderd_provisionerd_jobs_current{{provisioner="{name}"}} {running[name]}')
    lines += [f"# HELP {_TIMINGS} How long jobs took.", f"# TYPE {_TIMINGS} histogram"]
    for (provisioner, status), timings in sorted(activity.timings.items()):
        lines += _histogram(f'provisioner="{provisioner}",status="{status}"', timings)
    return "\n".join(lines) + "\n"


def _histogram(labels: str, timings: Timings) -> Iterator[str]:
    count = 0
    for bound, more in zip((*(f"{bound:g}" for bound in BUCKETS), "+Inf"), timings.counts, strict=True):
        count += more
        yield f'{_TIMINGS}_bucket{{{labels},le="{bound}"}} {count}'
    yield f"{_TIMINGS}_sum{{{labels}}} {timings.total:g}"
    yield f"{_TIMINGS}_count{{{labels}}} {count}"


async def serve_metrics(
    address: str,
    activity: ProvisionerActivity,
    *,
    task_status: trio.TaskStatus[list[trio.SocketListener]] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve until cancelled. Raises CoderError `bad_address`, `not_listening`."""
    host, _, port = address.rpartition(":")
    if not port.isdigit() or int(port) > 65535:
        hint = "Write host:port, as in 127.0.0.1:2112."
        raise CoderError("bad_address", f"--prometheus-address is not an address: {address}", hint)
    try:
        listeners = await trio.open_tcp_listeners(int(port), host=host.strip("[]") or None)
    except OSError as error:
        hint = "Choose another --prometheus-address, or leave --prometheus-enable out."
        raise CoderError("not_listening", f"metrics cannot be served at {address}", hint) from error
    task_status.started(listeners)
    await trio.serve_listeners(partial(_answer, activity), listeners)


async def _answer(activity: ProvisionerActivity, stream: trio.SocketStream) -> None:
    """Serve one request, then close the connection. A peer's misbehaviour closes it, too."""
    connection = BoundedHttp(h11.SERVER)
    async with stream:
        try:
            with trio.fail_after(REQUEST_TIMEOUT):
                request = await connection.read_event(stream)
                if isinstance(request, h11.Request):
                    await stream.send_all(_reply(connection, activity, request))
        except (trio.TooSlowError, trio.BrokenResourceError, h11.RemoteProtocolError):
            return


def _reply(connection: h11.Connection, activity: ProvisionerActivity, request: h11.Request) -> bytes:
    path = request.target.split(b"?")[0]
    is_metrics = request.method in (b"GET", b"HEAD") and path in (b"/", b"/metrics")
    body = metrics_text(activity).encode() if is_metrics else b"metrics are under /metrics\n"
    headers = [("Content-Type", _KIND), ("Content-Length", str(len(body))), ("Connection", "close")]
    out = connection.send(h11.Response(status_code=200 if is_metrics else 404, headers=headers)) or b""
    out += connection.send(h11.Data(data=b"" if request.method == b"HEAD" else body)) or b""
    return out + (connection.send(h11.EndOfMessage()) or b"")
