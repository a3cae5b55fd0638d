"""Log levels: debug messages of matching loggers, and higher levels of all loggers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from coder.base import log
from coder.base.errors import CoderError
from coder.cli.core.command import Command
from coder.cli.core.log_files import open_logs
from coder.cli.core.options import Options
from coder.cli.core.parsing import parse
from coder.cli.declarations.agents.agent import AGENT
from coder.cli.declarations.provisioning.provisioner_daemons import START
from coder.cli.declarations.server.server import SERVER
from coder.cli.declarations.server.workspace_proxy_server import SERVER as PROXY

A_PROXY = [
    "--primary-access-url=https://coder.example",
    "--proxy-session-token=2f3c0a1e-0000-4000-8000-000000000001:secret",
]
NAMES = ("http.request", "http.server", "database", "agent.http")


@pytest.fixture(autouse=True)
def restored_logs(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Close the log files after the test; programs keep them open until they exit."""
    before, opened, really = (log._State.sinks, log._State.threshold), [], Path.open

    def remember(path: Path, *how: Any, **rest: Any) -> Any:
        file = really(path, *how, **rest)
        if how == ("a",):
            opened.append(file)
        return file

    monkeypatch.setattr(Path, "open", remember)
    yield
    log._State.sinks, log._State.threshold = before
    log._State.is_debugged = None
    for file in opened:
        file.close()


@pytest.mark.parametrize(
    ("expressions", "verbose", "debugged"),
    [
        ((), False, ()),
        ((), True, NAMES),
        ((".*",), False, NAMES),
        (("^http",), False, NAMES[:2]),
        (("http",), False, ("http.request", "http.server", "agent.http")),
        (("request$", "data"), False, ("http.request", "database")),
        (("missing",), False, ()),
        (("missing",), True, NAMES),
    ],
)
def test_debug_of_matching_loggers(
    tmp_path: Path, expressions: tuple[str, ...], verbose: bool, debugged: tuple[str, ...]
) -> None:
    path = tmp_path / "log.json"
    open_logs("", str(path), verbose=verbose, debug=expressions)
    for name in NAMES:
        log.get_logger(name).debug("quietly")
        assert log.get_logger(name).tells("debug") is (name in debugged)
        log.get_logger(name).info("aloud")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert tuple(line["logger_names"][0] for line in lines if line["msg"] == "quietly") == debugged
    assert tuple(line["logger_names"][0] for line in lines if line["msg"] == "aloud") == NAMES


def test_invalid_expression_is_rejected() -> None:
    with pytest.raises(CoderError, match=r'--log-filter: "\(" is not a regular expression'):
        open_logs("", "", debug=("http", "("))


def test_each_sink_writes_its_file(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("human", "json", "stackdriver")]
    open_logs(*map(str, paths))
    log.get_logger("server").warn("beware")
    human, structured, cloud = (path.read_text() for path in paths)
    assert "[warn] server: beware" in human
    assert json.loads(structured)["level"] == "WARN"
    assert json.loads(cloud)["severity"] == "WARNING"


class _OpenedLogs(Exception):  # noqa: N818 - ends the command where its log would be opened
    pass


@pytest.mark.parametrize(
    ("command", "module", "flags"),
    [
        (SERVER, "coder.cli.server.server", ["--log-filter=^http", "--log-filter=data"]),
        (PROXY, "coder.cli.server.workspace_proxy_server", ["--log-filter=^http", "--log-filter=data", *A_PROXY]),
        (START, "coder.cli.provisioning.provisioner_daemons", ["--log-filter=^http", "--log-filter=data"]),
        (AGENT, "coder.cli.agents.agent_process", []),
    ],
    ids=["server", "proxy", "daemon", "agent"],
)
def test_every_role_passes_settings(
    command: Command[Options], module: str, flags: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def open_logs_instead(*paths: str, verbose: bool, debug: tuple[str, ...] = ()) -> None:
        assert paths == ("/h", "/j", "/s")
        assert not verbose
        assert tuple(debug) == (("^http", "data") if flags else ())
        raise _OpenedLogs

    monkeypatch.setattr(f"{module}.open_logs", open_logs_instead)
    with pytest.raises(_OpenedLogs):
        command.run(parse(command, ["--log-human=/h", "--log-json=/j", "--log-stackdriver=/s", *flags], {}))
