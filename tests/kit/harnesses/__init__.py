"""One harness for every `*_untrusted` function: how to call it with bytes, what it may raise, what a genuine input is.

Lives here: the table; one module a room has its part. tests/fuzz/test_every_parser.py feeds it, and fails for a parser
that has no line here. Keys are `path:name` as in the source.
"""

from __future__ import annotations

from tests.kit.harnesses.agent import AGENT
from tests.kit.harnesses.domain import DOMAIN
from tests.kit.harnesses.mesh import MESH
from tests.kit.harnesses.parts import Harness
from tests.kit.harnesses.provisioner import PROVISIONER
from tests.kit.harnesses.rpc import RPC
from tests.kit.harnesses.server import SERVER

__all__ = ["HARNESSES", "Harness"]

HARNESSES = {f"mesh/{key}": harness for key, harness in MESH.items()} | RPC | AGENT | SERVER | DOMAIN | PROVISIONER
