"""JSON shapes of machines attached by users. Ours, not upstream's."""

from __future__ import annotations

from coder.api.base.struct import ApiStruct


class RotatedAgentToken(ApiStruct):
    command: str
    agent_token: str
    generation: int
    """Number of the token generation; the template's token is 0."""
    good_generations: list[int]
    """Generations that are valid now; the older one until the newest is used."""
