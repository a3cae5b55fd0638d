"""The process of `coder agent`: its configuration, signals, and its replacement by a newer program."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
import tempfile
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import trio

from coder.agent.agent import AgentRole
from coder.agent.config import AgentConfig, DevcontainerSettings
from coder.agent.instance_identity import DOCUMENTS, exchange
from coder.agent.platform import system
from coder.agent.upgrade.handover import Handover, Restart, take_over
from coder.agent.upgrade.signals import ENDING, hold, release, signals_held_outside_receivers
from coder.agent.upgrade.supervisor import find_supervisor, hand_over
from coder.base.child_env import child_env
from coder.base.errors import CoderError
from coder.base.host import lift_terraform_limits
from coder.base.open_files import raise_open_files
from coder.base.quoted import quoted
from coder.base.retry import Backoff
from coder.base.secret import Secret
from coder.base.threads import run_trio
from coder.cli.agents.credentials import require_token, require_url
from coder.cli.core import session
from coder.cli.core.command import Invocation
from coder.cli.core.log_files import open_logs
from coder.cli.core.unsupported import warn_of_unsupported
from coder.cli.declarations.agents.agent import AgentOptions
from coder.net.policy import DialPolicy

SCRIPT_FOLDER_VARIABLE = "CODER_AGENT_REMOVE_PROGRAM"
"""Environment variable with the program's path in the temporary folder of the start script
(`domain/agents/init_scripts.py`)."""
_SCRIPT_FOLDER = re.compile(r"\.?coder\.[\w.]{6,}")
"Prefix of that folder's name; mktemp on macOS appends more characters."


FIRST_RESTART, LAST_RESTART = 0.1, 60.0
"Seconds (ours) before the agent of a claimed workspace starts for its new owner, and at most when that repeats."


def run_agent(invocation: Invocation[AgentOptions]) -> int:
    """Run the agent until it ends, and return the exit code."""
    if not find_supervisor(os.environ):  # whose group this process belongs to
        system.contain_children()
    handover, env = take_over(os.environ), child_env()
    script_program = os.environ.pop(
        SCRIPT_FOLDER_VARIABLE, ""
    )  # a program that replaces this one has it in `env`; children must not inherit it
    try:
        paths = invocation.options.log_human, invocation.options.log_json, invocation.options.log_stackdriver
        open_logs(*paths, verbose=bool(invocation.globals.verbose))
        warn_of_unsupported(invocation)
        config = _config(invocation)
        # Children get the token in use, not the one this process started with.
        os.environ.pop("CODER_AGENT_TOKEN", None)
        restart = Restart(tuple(sys.argv[1:]), env, _handle_inherited_ignored_signals())
        raise_open_files()
        lift_terraform_limits()
        with signals_held_outside_receivers():
            while (left := run_trio(_main, config, handover)) is not None:
                handover = hand_over(left, restart)
    finally:
        if script_program:
            remove_script_folder(Path(script_program))
    return 0


def remove_script_folder(program: Path) -> None:
    """Remove the file and its folder, if the script created them. Other files stay and keep the folder."""
    if not program.is_absolute() or program.name != "coder" or not _SCRIPT_FOLDER.fullmatch(program.parent.name):
        return
    with contextlib.suppress(OSError):
        os.chdir("/")  # it is the working directory
        program.unlink(missing_ok=True)
        program.parent.rmdir()


def _handle_inherited_ignored_signals() -> tuple[signal.Signals, ...]:
    """Handle signals that the agent inherited as ignored, under nohup or `&` in a script; its shells would ignore them
    too.

    A caught signal is reset to its default in a child; an ignored one stays ignored. Return the signals that were
    ignored.
    """
    caught = []
    for name in ("SIGHUP", "SIGQUIT"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda _number, _frame: None)
            caught.append(number)
    return tuple(caught)


async def _main(config: AgentConfig, handover: Handover | None) -> Handover | None:
    """Run the agent. Return the handover to a newer program in this process; None if the agent ended."""
    agent, stopping = AgentRole(config, handover), trio.Event()
    pauses = Backoff(FIRST_RESTART, LAST_RESTART)

    async def watch_signals(*, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        with trio.open_signal_receiver(*ENDING) as signals:
            release()
            task_status.started()
            async for _ in signals:
                stopping.set()
                agent.stop()
                break
            async for _ in signals:
                raise KeyboardInterrupt  # second signal: stop waiting for stop scripts

    async with trio.open_nursery() as nursery:
        await nursery.start(watch_signals)
        while True:
            began = trio.current_time()
            claimed = await agent.run()
            if claimed:
                if trio.current_time() - began > LAST_RESTART:
                    pauses.reset()
                with trio.move_on_after(pauses.next_delay()):  # a workspace is claimed once; a server may repeat it
                    await stopping.wait()
                agent = AgentRole(config)  # the workspace has a new owner
            elif agent.handover is not None and stopping.is_set():
                agent = AgentRole(config, agent.handover)  # too late to stop: the new program runs the stop scripts
            else:
                break
            if stopping.is_set():
                agent.stop()
        if agent.handover is not None:
            hold()  # for the new program, until its receiver is open
        nursery.cancel_scope.cancel()
    return agent.handover


def _config(invocation: Invocation[AgentOptions]) -> AgentConfig:
    url = session.deployment_url(require_url(invocation))
    headers = session.read_headers(invocation.options.agent_header, invocation.options.agent_header_command)
    policy = session.with_tls_files(DialPolicy(url, headers=headers), invocation)
    auth = str(invocation.options.auth)
    token = Secret(require_token(invocation) if auth == "token" else "")
    return AgentConfig(
        policy=policy.with_token(token or None),
        token=token,
        exchange=None if auth == "token" else _exchange(auth, policy, invocation.options.agent_name),
        log_dir=Path(invocation.options.log_dir or tempfile.gettempdir()),
        script_data_dir=Path(invocation.options.script_data_dir or tempfile.gettempdir()),
        executable=session.program(),
        listen_port=invocation.options.tailnet_listen_port,
        ssh_max_timeout=invocation.options.ssh_max_timeout,
        block_file_transfer=invocation.options.block_file_transfer,
        block_local_forwarding=invocation.options.block_local_forwarding,
        block_reverse_forwarding=invocation.options.block_reverse_forwarding,
        log_file=_log_file(invocation.options.log_human),
        debug_address=_address("debug-address", invocation.options.debug_address),
        prometheus_address=_address("prometheus-address", invocation.options.prometheus_address),
        socket_path=Path(invocation.options.socket_path) if invocation.options.socket_path else None,
        socket_enabled=invocation.options.socket_enabled,
        devcontainers=DevcontainerSettings(
            discover=invocation.options.discovery, autostart=invocation.options.discovery_autostart
        )
        if invocation.options.devcontainers
        else None,
        self_upgrade=invocation.options.self_upgrade,
        upgrade_keyring=Path(invocation.options.self_upgrade_keyring)
        if invocation.options.self_upgrade_keyring
        else None,
        state_dir=Path(invocation.options.state_dir)
        if invocation.options.state_dir
        else system.state_folder(invocation.env),
        subsystems=tuple(part for part in invocation.env.get("CODER_AGENT_SUBSYSTEM", "").split(",") if part),
    )


def _log_file(path: str) -> Path | None:
    return None if not path or path.startswith("/dev/") else Path(path)


def _address(flag: str, text: str) -> tuple[str, int] | None:
    """Return host and port of a listener; None if it is disabled."""
    if not text:
        return None
    host, _, port = text.rpartition(":")
    if not port.isdigit() or int(port) > 65535:
        raise CoderError("bad_address", f"--{flag} is not an address: {text}", "Write host:port, as in 127.0.0.1:2113.")
    return host.strip("[]") or "0.0.0.0", int(port)


def _exchange(auth: str, policy: DialPolicy, agent_name: str) -> Callable[[], Awaitable[Secret]]:
    if auth not in DOCUMENTS:
        known = ", ".join(["token", *DOCUMENTS])
        raise CoderError("agent_auth", f"unknown agent authentication {quoted(auth)}", f"Use one of: {known}.")
    return partial(exchange, policy, auth, agent_name)
