"""Harnesses of the agent."""

from __future__ import annotations

import json
import struct
import zlib
from typing import cast

from coder.base.json_types import Json
from tests.kit.harnesses.parts import Harness


def _slot(data: bytes) -> object:
    from coder.agent.reports.flight_file import _slot_untrusted

    return _slot_untrusted(data)


def _slot_bytes() -> bytes:
    """A slot as a flight recorder writes it: checksum, number, length, document."""
    body = b'{"events":[]}'
    rest = struct.pack(">QI", 1, len(body)) + body
    return struct.pack(">I", zlib.crc32(rest)) + rest


def _flight_look(data: bytes) -> object:
    from coder.agent.reports.flight_recorder import _look_untrusted

    return _look_untrusted(cast("Json", _document(data)))


def _flight_event(data: bytes) -> object:
    from coder.agent.reports.flight_recorder import _event_untrusted

    return _event_untrusted(cast("Json", _document(data)))


def _document(data: bytes) -> object:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _ciphers(data: bytes) -> object:
    from coder.agent.ssh import negotiation

    return negotiation.encryption_untrusted(data)


def _flight_end(data: bytes) -> object:
    from coder.agent.reports.flight_recorder import _ended_untrusted

    found = _document(data)
    return _ended_untrusted(found if isinstance(found, dict) else {})


def _tool_server_error() -> type[Exception]:
    from coder.agent.workspace.mcp_servers import ToolServerError

    return ToolServerError


def _tool_servers(data: bytes) -> object:
    from coder.agent.workspace.mcp_servers import read_specs_untrusted

    return read_specs_untrusted(data)


def _speedtest(data: bytes) -> object:
    from coder.agent.network.speedtest import read_request_untrusted

    return read_request_untrusted(data)


def _command_error() -> type[Exception]:
    from coder.agent.devcontainers.commands import CommandError

    return CommandError


def _outcome(data: bytes) -> object:
    from coder.agent.devcontainers.builder import read_outcome_untrusted
    from coder.agent.devcontainers.commands import CommandResult

    return read_outcome_untrusted(CommandResult(0, data, ""))


def _configuration(data: bytes) -> object:
    from coder.agent.devcontainers.configuration import read_configuration_untrusted

    return read_configuration_untrusted(data)


def _containers(data: bytes) -> object:
    from coder.agent.devcontainers.engine import read_containers_untrusted

    return read_containers_untrusted(data)


def _printed_json(data: bytes) -> object:
    from coder.agent.devcontainers.commands import read_json_untrusted

    return read_json_untrusted(data)


KEXINIT = (
    (200).to_bytes(4, "big")
    + b"\x04\x14"
    + bytes(16)
    + b"".join(
        len(names).to_bytes(4, "big") + names for names in (b"a,b", b"ssh-ed25519", b"aes128-ctr", b"aes256-ctr", b"")
    )
    + bytes(120)
)


AGENT = {
    "agent/reports/flight_file.py:_slot_untrusted": Harness(_slot, (), [_slot_bytes()]),
    "agent/reports/flight_recorder.py:_look_untrusted": Harness(_flight_look, (), [b'{"wall":1}', b"[]"]),
    "agent/reports/flight_recorder.py:_event_untrusted": Harness(
        _flight_event, (), [b'{"at":1,"kind":"lost","data":{}}', b'{"at":"x","kind":1,"data":[1]}']
    ),
    "agent/reports/flight_recorder.py:_ended_untrusted": Harness(
        _flight_end, (), [b'{"stopped":true}', b'{"stopped":false,"ended":"upgraded"}', b'{"ended":[]}']
    ),
    "agent/workspace/mcp_servers.py:read_specs_untrusted": Harness(
        _tool_servers, (_tool_server_error(),), [b'{"mcpServers":{"a":{"command":"x","args":["y"],"env":{"Z":"1"}}}}']
    ),
    "agent/network/speedtest.py:read_request_untrusted": Harness(
        _speedtest, (), [b'{"version":2,"time":500000000,"direction":0}\n', b"hello\n", b'{"version":[]}']
    ),
    "agent/devcontainers/builder.py:read_outcome_untrusted": Harness(
        _outcome, (_command_error(),), [b'{"outcome":"success","containerId":"a"}\n', b'x\n{"outcome":"error"}', b"[]"]
    ),
    "agent/devcontainers/commands.py:read_json_untrusted": Harness(
        _printed_json, (ValueError, RecursionError), [b'{"a":["b",{"c":1.5}],"d":"\\u0000","e":"\\ud800"}']
    ),
    "agent/devcontainers/configuration.py:read_configuration_untrusted": Harness(
        _configuration,
        (_command_error(),),
        [b'{"mergedConfiguration":{"customizations":{"coder":[{"apps":[{"slug":"a","url":"x"}],"displayApps":{}}]}}}'],
    ),
    "agent/devcontainers/engine.py:read_containers_untrusted": Harness(
        _containers,
        (_command_error(),),
        [b'[{"Id":"a","Config":{"Labels":{"a":"b"}},"NetworkSettings":{"Ports":{"80/tcp":[{"HostPort":"1"}]}}}]'],
    ),
    "agent/ssh/negotiation.py:encryption_untrusted": Harness(_ciphers, (), [KEXINIT]),
}
