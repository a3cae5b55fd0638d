"""Identifiers and generated names."""

from __future__ import annotations

import secrets
import uuid

_ADJECTIVES = (
    "amber ample agile bold brave brisk bright calm candid cheery clever cosmic crisp curious daring dapper deft "
    "eager early earnest easy fair fancy fearless festive fond frank fresh friendly gentle gifted glad golden "
    "graceful grand happy hardy hasty honest humble jolly keen kind lively logical loyal lucid lucky mellow merry "
    "mighty modest neat nifty nimble noble patient peppy plucky polite proud quick quiet quirky rapid ready "
    "robust serene sharp silent sincere sleek smart snappy spry steady stoic sunny swift tender tidy upbeat "
    "vibrant vivid warm witty zany zealous zen"
).split()
_NOUNS = (
    "anchor aspen badger basin beacon birch bison brook canyon cedar cliff comet condor coral cove crane creek "
    "cypress delta dune eagle elm ember falcon fern finch fjord forge fox gale geyser glacier grove harbor hawk "
    "heron hill ibis island jaguar juniper kestrel lagoon lark lynx maple marsh meadow mesa moose nebula oak "
    "orbit orca osprey otter owl panther peak pine plover pond prairie puma quail quartz raven reef ridge river "
    "robin salmon sequoia shore sparrow spruce star stone summit swan thicket tiger trail tundra valley walnut "
    "willow wolf wren"
).split()


def new_uuid() -> uuid.UUID:
    """Return a random (version 4) UUID."""
    return uuid.uuid4()


def random_name(separator: str = "_") -> str:
    """Return a readable name such as `happy_otter7`, for things whose author gave none."""
    adjective, noun = secrets.choice(_ADJECTIVES), secrets.choice(_NOUNS)
    return f"{adjective}{separator}{noun}{secrets.randbelow(10)}"
