"""The recorded data under tests/data/wire, as Python values."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, cast

from google.protobuf import text_format
from google.protobuf.message import Message

WIRE = Path(__file__).resolve().parents[2] / "data" / "wire"
_PACKAGES = {
    "coder.agent.v2": "agent_pb2",
    "coder.tailnet.v2": "tailnet_pb2",
    "provisionerd": "provisionerd_pb2",
    "provisioner": "provisioner_pb2",
}


def load_json(name: str) -> Any:
    return json.loads((WIRE / name).read_text())


def load_lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (WIRE / name).read_text().splitlines() if line]


@cache
def message_type(full_name: str) -> type[Message]:
    """The generated class of a full protobuf name; nested ones with dots, well-known ones too."""
    if full_name.startswith("google.protobuf."):
        from google.protobuf import empty_pb2

        return {"google.protobuf.Empty": empty_pb2.Empty}[full_name]
    package = next(name for name in _PACKAGES if full_name.startswith(name + "."))
    found: Any = importlib.import_module(f"coder.rpc.proto.{_PACKAGES[package]}")
    for part in full_name[len(package) + 1 :].split("."):
        found = getattr(found, part)
    return cast("type[Message]", found)


_SCRUBBED = re.compile(r'ssh_private_key\\": *\\".*?\\"')


def same_message(found: Message, recorded: Message) -> bool:
    """Equality, except for private keys inside terraform states: each recorded form has its own stand-in for them."""
    if found == recorded:
        return True
    texts = (_SCRUBBED.sub("", text_format.MessageToString(message)) for message in (found, recorded))
    return next(texts) == next(texts)


def both_directions(chunks: list[dict[str, Any]]) -> Iterator[tuple[str, bytes]]:
    """(dir, bytes) of the binary lines of a recording, in order."""
    for line in chunks:
        if line.get("kind") != "http" and line.get("op", "binary") == "binary":
            yield line["dir"], bytes.fromhex(line["hex"])
