"""`coder ssh`: runs a shell or a command, or copies raw bytes for an SSH ProxyCommand."""

from __future__ import annotations

import contextlib
from importlib import import_module

import trio

from coder.base import garbage
from coder.base.errors import CoderError
from coder.base.threads import in_thread_or_here, run_trio
from coder.cli.core import session
from coder.cli.core.command import Invocation, implements
from coder.cli.declarations.network.ssh import SSH, SshOptions
from coder.cli.network.ssh_arguments import environment_pair, remote_forward
from coder.client.ready import Preparation, ReadyAgent, print_to_stderr
from coder.net.http1 import HttpClient


@implements(SSH)
def _run(invocation: Invocation[SshOptions]) -> int:
    garbage.pause()
    try:
        return run_trio(_main, invocation)
    finally:
        garbage.go_on()  # if the preparation did not reach that point


async def _main(invocation: Invocation[SshOptions]) -> int:
    if invocation.options.stdio and invocation.options.container:
        raise CoderError(
            "container_and_stdio",
            "--container cannot be combined with --stdio",
            "With --stdio the session is your SSH client's: ssh -o SetEnv=CODER_CONTAINER=name …",
        )
    for text in invocation.options.env:
        environment_pair(text)
    for text in invocation.options.remote_forward:
        remote_forward(text)  # before starting a workspace for it
    policy = session.dial_policy(invocation)
    name = _target_name(invocation)
    async with contextlib.AsyncExitStack() as stack:
        if invocation.options.log_dir:
            from coder.client.tracing import log_to_directory

            stack.enter_context(log_to_directory(invocation.options.log_dir))
        http = await stack.enter_async_context(HttpClient(policy))
        nursery = await stack.enter_async_context(trio.open_nursery())
        # Imports take half of a short session's time; they run during the requests to the server.
        loaded = trio.Event()
        nursery.start_soon(_import_modules, bool(invocation.options.stdio), loaded)
        prepare = Preparation(http, print_to_stderr, autostart=not invocation.options.disable_autostart)
        target: ReadyAgent = await prepare.wait_connected(await prepare.find(name))
        await loaded.wait()
        from coder.cli.network.ssh_session import run_session

        code = await run_session(invocation, policy, prepare, target)
        nursery.cancel_scope.cancel()
    return code


async def _import_modules(stdio: bool, loaded: trio.Event) -> None:
    """Import the session's modules in a thread: first the mesh, then SSH (if this process is the SSH client).

    Re-enable garbage collection afterwards.
    """

    await in_thread_or_here(import_module, "coder.cli.network.ssh_session")
    loaded.set()
    if not stdio:
        await in_thread_or_here(import_module, "coder.client.shell")
    garbage.go_on()


def _target_name(invocation: Invocation[SshOptions]) -> str:
    """Return the workspace of a host name: without the prefix or suffix that config-ssh added."""
    name: str = invocation.args[0]
    prefix, suffix = invocation.options.ssh_host_prefix, invocation.options.hostname_suffix.lstrip(".")
    if prefix:
        name = name.removeprefix(prefix)
    if suffix and name.endswith(f".{suffix}"):
        name = name[: -len(suffix) - 1]
        # Desktop-style names put the agent first: agent.workspace[.owner].
        parts = name.split(".")
        if len(parts) == 3:
            return f"{parts[2]}/{parts[1]}.{parts[0]}"
        if len(parts) == 2:
            return f"{parts[1]}.{parts[0]}"
    return name
