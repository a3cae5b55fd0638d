"""Secrets of an owner that are files of the workspace, written when it starts."""

from __future__ import annotations

import os
from pathlib import Path

import trio

from coder.agent.disk import LOOK_TIME, FolderThreads, on_disk
from coder.agent.state import AgentState
from coder.agent.workspace.environment import expand_directory
from coder.agent.workspace.files import open_to_write
from coder.base.log import get_logger
from coder.rpc.proto import agent_pb2

log = get_logger("agent")

_THREADS = FolderThreads(1)
"""However many secrets are to lie in one."""


async def write_secret_files(state: AgentState, manifest: agent_pb2.Manifest) -> None:
    """Scripts find them. One that cannot be written, or on a disk that does not answer, is said in the log, and costs
    no other."""
    for secret in manifest.secrets:
        if secret.file_path:
            path = expand_directory(secret.file_path, state.identity, {})
            try:
                with trio.fail_after(LOOK_TIME):
                    await on_disk(_write, path, secret.value, limiter=_THREADS.of(path.parent))
            except trio.TooSlowError:
                log.error("no answer from the disk of a secret's file", path=path)
            except OSError as error:
                log.error("cannot write a secret's file", path=path, error=error)


def _write(path: Path, value: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.fdopen(open_to_write(path, os.O_TRUNC, 0o600), "wb") as out:
        out.write(value)
