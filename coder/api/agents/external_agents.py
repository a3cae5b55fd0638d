"""JSON shapes of keeping machines attached that somebody else runs. Ours, not upstream's."""

from __future__ import annotations

from coder.api.base.struct import ApiStruct


class RotatedAgentToken(ApiStruct):
    command: str
    agent_token: str
    generation: int
    "Counted from the template's token, which is 0."
    good_generations: list[int]
    "Those that let the agent in now; the older one until the newest is used."
