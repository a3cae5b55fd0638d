"""Secrets of an owner that are files of the workspace, written when it starts."""

from __future__ import annotations

import os
from pathlib import Path

import trio

from coder.agent.disk import DISK_TIMEOUT, FolderThreads, on_disk
from coder.agent.state import AgentState
from coder.agent.workspace.environment import expand_directory
from coder.agent.workspace.files import NO_WAIT
from coder.base.files.private_files import open_private
from coder.base.log import get_logger
from coder.rpc.proto import agent_pb2

log = get_logger("agent")

_THREADS = FolderThreads(1)
"""One thread for each folder, however many secrets it holds."""


async def write_secret_files(state: AgentState, manifest: agent_pb2.Manifest) -> None:
    """Write the secret files before scripts start. A file that cannot be written, or whose disk does not answer, is
    logged and does not affect the others."""
    for secret in manifest.secrets:
        if secret.file_path:
            path = expand_directory(secret.file_path, state.identity, {})
            try:
                with trio.fail_after(DISK_TIMEOUT):
                    await on_disk(_write, path, secret.value, limiter=_THREADS.of(path.parent))
            except trio.TooSlowError:
                log.error("the disk of a secret's file does not answer", path=path)
            except (OSError, ValueError) as error:  # a zero byte, which no path can hold
                log.error("cannot write a secret's file", path=path, error=error)


def _write(path: Path, value: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.fdopen(open_private(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | NO_WAIT), "wb") as out:
        out.write(value)
