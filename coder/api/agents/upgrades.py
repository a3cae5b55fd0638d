"""JSON shape of an agent's upgrade to its server's program, ours."""

from __future__ import annotations

from typing import Literal

from coder.api.base.struct import ApiStruct

AgentUpgradeState = Literal[
    "checking",
    "disabled",
    "downloading",
    "failed",
    "queued",
    "refused",
    "restarting",
    "unsupported",
    "waiting",
    "watching",
]
"""`watching`: no newer program is known. `queued`: the download starts at a random time. `waiting`: until the agent is
idle, which `detail` names. `disabled`: it was started without `--self-upgrade`. `unsupported`: it is too old to tell.
"""


class AgentUpgrade(ApiStruct):
    state: AgentUpgradeState
    detail: str
    """The cause of `failed` and `refused`, the activity that `waiting` waits for; else empty."""
    version: str
    """Version of the agent."""
    server_version: str
    """Version of this server."""
