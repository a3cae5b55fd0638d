"""Elements are counted in the encoding with the same result as in the message: excess is never decoded."""

from __future__ import annotations

import pytest
from google.protobuf.message import Message

from coder.rpc import wire_elements
from coder.rpc.calls import LARGE_REQUEST, decode_request
from coder.rpc.errors import RpcError
from coder.rpc.proto import agent_pb2, provisionerd_pb2
from coder.rpc.request_limits import MAX_TOTAL_ELEMENTS, REQUEST_LIMITS
from tests.unit.rpc.test_request_limits import _cases, _filled, _large_plan


def explained(message: Message, more: bytes = b"") -> str:
    return REQUEST_LIMITS.explain_encoded(message.DESCRIPTOR, message.SerializeToString() + more)


def test_counts_match_decoded_message() -> None:
    wrong, looked = [], 0
    for name, path, what, most in _cases():
        if what == "elements":
            looked += 1
            if refusal := explained(_filled(name, path, what, most)):
                wrong.append(f"{path[-1].full_name}: {most} refused: {refusal}")
            refusal = explained(_filled(name, path, what, most + 1))
            if path[-1].full_name not in refusal or str(most) not in refusal:
                wrong.append(f"{path[-1].full_name}: {most + 1}: {refusal or 'taken'}")
    assert looked > 50
    assert not wrong, "\n".join(wrong)


async def test_excess_is_not_decoded() -> None:
    """The end of the data is not protobuf, which stays undetected."""
    data = b"\x12\x00" * (2 * LARGE_REQUEST) + b"\xff"
    with pytest.raises(RpcError, match=r"BatchCreateLogsRequest\.logs has over 65536 elements"):
        await decode_request(agent_pb2.BatchCreateLogsRequest, data, REQUEST_LIMITS)


def test_nested_lists_count_together() -> None:
    request = provisionerd_pb2.CompletedJob()
    for _ in range(33):
        resource = request.workspace_build.resources.add()
        resource.agents.MergeFrom([type(resource.agents.add())()] * 1000)
    assert explained(request) == f"the message has over {MAX_TOTAL_ELEMENTS} elements"


def test_repeated_fields_are_bounded() -> None:
    """One message in parts, which a decoder would join: no part exceeds the limit."""
    assert explained(agent_pb2.BatchCreateLogsRequest(), b"\x18\x01" * (wire_elements.MAX_FIELDS + 1)) == (
        f"the message has over {wire_elements.MAX_FIELDS} fields"
    )


def test_largest_genuine_plan_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire_elements, "MAX_FIELDS", wire_elements.MAX_FIELDS // 3)
    assert not explained(_large_plan())


@pytest.mark.parametrize(
    "broken", [b"\x12", b"\x12\x05x", b"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", b"\x13"]
)
def test_broken_encodings_are_rejected(broken: bytes) -> None:
    assert explained(agent_pb2.BatchCreateLogsRequest(), broken) == "the message cannot be decoded"


def test_table_creation_is_thread_safe() -> None:
    """Large messages are counted in several threads, and the first of a kind finds an empty cache."""
    known: dict[str, wire_elements.Fields] = {}
    seen = list[bool]()

    def limit_of(field: wire_elements.FieldKind) -> wire_elements.FieldLimit:
        seen.append(not known)
        return REQUEST_LIMITS.of(field)

    for kind in (provisionerd_pb2.CompletedJob, agent_pb2.Manifest):
        made = wire_elements.fields_of(kind.DESCRIPTOR, limit_of, known)
        assert made.rows and known[kind.DESCRIPTOR.full_name] is made
        assert seen and all(seen), "incomplete kinds are not published"
        known.clear()
        seen.clear()
