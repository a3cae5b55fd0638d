"""Every setting of the agent and of the daemon is used, or listed with the reason why not."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from coder.base import log
from coder.base.config import Option
from coder.base.errors import CoderError
from coder.cli.agents.reaper import must_reap
from coder.cli.core.command import Command, Invocation
from coder.cli.core.options import Options
from coder.cli.core.parsing import parse
from coder.cli.core.unsupported import AGENT, DAEMON, check_settings, warn_of_unsupported
from coder.cli.declarations.agents.agent import AGENT as AGENT_COMMAND
from coder.cli.declarations.provisioning.provisioner_daemons import LEGACY_START, START
from coder.cli.declarations.server.workspace_proxy_server import SERVER as PROXY
from coder.wsproxy.config import WITHOUT_EFFECT
from tests.kit.paths import ROOT

READ = re.compile(r"\boptions\.(\w+)")
SOURCES = {
    "agent": ("coder/cli/agents/agent.py", "coder/cli/agents/agent_process.py"),
    "provisioner start": ("coder/cli/provisioning/provisioner_daemons.py",),
}
REASONS = {"agent": AGENT, "provisioner start": DAEMON}
COMMANDS: dict[str, Command[Options]] = {"agent": AGENT_COMMAND, "provisioner start": START}


def _read_by(words: str) -> set[str]:
    """Return the options that the command's code reads, and those of shared helpers."""
    helpers = ("coder/cli/core/session.py", "coder/cli/agents/credentials.py")
    shared = {"org"}.union(*(READ.findall((ROOT / helper).read_text()) for helper in helpers))
    return shared.union(*(READ.findall((ROOT / source).read_text()) for source in SOURCES[words]))


def _other(option: Option) -> str:
    values: dict[str, Any] = {"bool": str(not option.default).lower(), "int": "7", "duration": "37m"}
    values["host:port"] = "127.0.0.1:7"
    return str(values.get(option.kind, "something"))


def _given(command: Command[Options], option: Option) -> Invocation[Options]:
    return parse(command, [f"--{option.flag}={_other(option)}"], {})


@pytest.mark.parametrize("words", COMMANDS)
def test_every_setting_is_used_or_listed(words: str) -> None:
    names = {option.name for option in COMMANDS[words].options}
    assert names - _read_by(words) - REASONS[words].keys() == set()
    assert REASONS[words].keys() <= names
    assert not REASONS[words].keys() & _read_by(words), "it has an effect now: take it off the list"


@pytest.fixture
def logged() -> Iterator[list[str]]:
    """Collect the messages of level warn."""
    lines: list[str] = []

    def keep(level: log.Level, _at: datetime, _name: str, message: str, _fields: dict[str, Any]) -> None:
        if level == "warn":
            lines.append(message)

    with log.also(keep):
        yield lines


@pytest.mark.parametrize(
    ("command", "reasons", "option"),
    [
        pytest.param(command, reasons, option, id=f"{command.words} --{option.flag}")
        for command, reasons in ((START, DAEMON), (LEGACY_START, DAEMON), (PROXY, WITHOUT_EFFECT))
        for option in command.options
        if option.name in reasons
    ],
)
def test_unsupported_flags_fail_and_variables_warn(
    command: Command[Options], reasons: dict[str, str], option: Option, logged: list[str]
) -> None:
    with pytest.raises(CoderError, match=f"--{option.flag} is not supported: ") as caught:
        check_settings(_given(command, option), reasons, "role")
    assert option.env in caught.value.hint
    check_settings(parse(command, [], {}), reasons, "role")
    assert not logged
    check_settings(parse(command, [], {option.env: _other(option)}), reasons, "role")  # a file shared with the server
    assert logged == [f"--{option.flag} is not supported: {reasons[option.name]}"]


@pytest.mark.parametrize(
    "option", [item for item in AGENT_COMMAND.options if item.name in AGENT], ids=lambda item: item.flag
)
def test_agent_logs_unsupported_settings(option: Option, logged: list[str]) -> None:
    warn_of_unsupported(parse(AGENT_COMMAND, [], {}))
    assert not logged
    warn_of_unsupported(_given(AGENT_COMMAND, option))
    assert logged[0].startswith(f"--{option.flag} is not supported: ")


def test_only_pid_one_reaps() -> None:
    assert must_reap(1, "linux", no_reap=False)
    assert not any((must_reap(1, "linux", no_reap=True), must_reap(7, "linux", no_reap=False)))
    assert not must_reap(1, "darwin", no_reap=False)


REAPED = """
import ctypes, os, signal, sys, time
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER: orphans come here as to a first process
from coder.cli.agents.reaper import become_reaper
become_reaper()
reaper = os.getppid()
signal.signal(signal.SIGUSR1, lambda *_: os._exit(42))
middle = os.fork()
if middle == 0:
    orphan = os.fork()
    if orphan == 0:
        while os.getppid() != reaper:
            time.sleep(0.01)
        os._exit(0)
    print(orphan, flush=True)
    os._exit(0)
os.waitpid(middle, 0)
print("ready", flush=True)
while True:
    signal.pause()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="orphans go elsewhere on other systems")
def test_reaper_handles_orphans_and_signals() -> None:
    process = subprocess.Popen([sys.executable, "-c", REAPED], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert process.stdout is not None
    orphan = int(process.stdout.readline())
    assert process.stdout.readline() == "ready\n"
    while _exists(orphan):
        pass
    process.send_signal(signal.SIGUSR1)
    assert process.wait(60) == 42
    process.stdout.close()


def _exists(pid: int) -> bool:
    """Return whether a process exists; a zombie exists too."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
