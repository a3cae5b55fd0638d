"""Secrets of an owner that are files of the workspace, written when it starts."""

from __future__ import annotations

import os

import trio

from coder.agent.disk import LOOK_TIME, on_disk
from coder.agent.state import AgentState, Identity
from coder.agent.workspace.environment import expand_directory
from coder.agent.workspace.files import open_to_write
from coder.base.log import get_logger
from coder.rpc.proto import agent_pb2

log = get_logger("agent")


async def write_secret_files(state: AgentState, manifest: agent_pb2.Manifest) -> None:
    """Scripts find them. One that cannot be written, or on a disk that does not answer, is said in the log, and costs
    no other."""
    for secret in manifest.secrets:
        if secret.file_path:
            with trio.move_on_after(LOOK_TIME) as limit:
                await on_disk(_write, state.identity, secret)
            if limit.cancelled_caught:
                log.error("no answer from the disk of a secret's file", path=secret.file_path)


def _write(identity: Identity, secret: agent_pb2.WorkspaceSecret) -> None:
    path = expand_directory(secret.file_path, identity, {})
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with os.fdopen(open_to_write(path, os.O_TRUNC, 0o600), "wb") as out:
            out.write(secret.value)
    except OSError as error:
        log.error("cannot write a secret's file", path=path, error=error)
