"""Every field of an RPC message in which an id can stand, read from the descriptors of the services a server answers.

A method that is added brings its fields; whoever asks (`test_foreign_ids_in_rpc.py`) has to say what each is about.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from coder.rpc.proto import agent_pb2, overlay_pb2, provisionerd_pb2, tailnet_pb2

SERVED = (agent_pb2, tailnet_pb2, provisionerd_pb2, overlay_pb2)
"The fifth protocol, `provisioner`, is spoken between a daemon and its executor; the server takes no part."
_ID = re.compile(r"(^|_)(uu)?ids?($|_)|(^|_)(slug|token|process|hash)($|_)")


def methods() -> dict[str, Any]:
    """By `Service.Method`: the descriptor of each."""
    return {
        f"{service.name}.{method.name}": method
        for module in SERVED
        for service in module.DESCRIPTOR.services_by_name.values()
        for method in service.methods
    }


def id_fields() -> dict[str, list[str]]:
    """By `Service.Method`: the dotted paths of the request's fields that are named like an id."""
    return {name: list(dict.fromkeys(_fields(method.input_type))) for name, method in methods().items()}


def _fields(kind: Descriptor, before: tuple[str, ...] = (), inside: frozenset[str] = frozenset()) -> Iterator[str]:
    for field in kind.fields:
        path = (*before, field.name)
        if field.message_type is None:
            if _ID.search(field.name):
                yield ".".join(path)
        elif field.message_type.full_name not in inside:
            yield from _fields(field.message_type, path, inside | {field.message_type.full_name})


def request_of(name: str) -> Message:
    return GetMessageClass(methods()[name].input_type)()


def reply_type(name: str) -> type[Message]:
    return GetMessageClass(methods()[name].output_type)


def put(message: Any, path: str, value: Any) -> None:
    """Sets the field at `path`; lists on the way get one item where they have none."""
    first, _, rest = path.partition(".")
    field = message.DESCRIPTOR.fields_by_name[first]
    if not rest:
        as_bytes = field.type == FieldDescriptor.TYPE_BYTES
        setattr(message, first, value.bytes if as_bytes else str(value))
        return
    inner = getattr(message, first)
    if field.is_repeated:
        inner = inner[0] if len(inner) else inner.add()
    put(inner, rest, value)
