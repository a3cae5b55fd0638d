"""No recording is unused: this file lists every file of tests/data/wire with the tests that replay it.

A new file fails until there is a test for it and a line here; each line is compared with the text of that test.
"""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
WIRE = TESTS / "data/wire"
RPC = ("rpc_agent", "rpc_client_ping", "rpc_client_ssh", "rpc_tailnet")
JOBS = ("import", "build_start", "import_plan_error", "import_missing_variable", "build_start_canceled")

Replay = tuple[str, str]
"""(test file, expression that loads the recording: a name, or the pieces of the name)."""

REPLAYS: dict[str, tuple[Replay, ...]] = {
    "addresses.json": (("vectors/test_addresses.py", "addresses.json"),),
    "derp.json": (("vectors/test_mesh_wire.py", "derp.json"), ("unit/mesh/drivers/test_derp.py", "derp.json")),
    "derp_ssh_session.jsonl": (("vectors/test_recorded_streams.py", "derp_ssh_session.jsonl"),),
    "disco.json": (("vectors/test_mesh_wire.py", "disco.json"),),
    "http_examples.json": (("unit/coderd/rpc_endpoints/test_recorded_endpoints.py", "http_examples.json"),),
    "keys.json": (("vectors/test_mesh_wire.py", "keys.json"),),
    "proto_filled.jsonl": (("vectors/test_proto_messages.py", "proto_filled.jsonl"),),
    "proto_messages_agent_tailnet.jsonl": (("vectors/test_proto_messages.py", "proto_messages_agent_tailnet.jsonl"),),
    "proto_messages_provisioner.jsonl": (("vectors/test_proto_messages.py", "proto_messages_provisioner.jsonl"),),
    "prov_daemon.jsonl": (("vectors/test_rpc_recordings.py", "prov_daemon.jsonl"),),
    "prov_daemon_decoded.jsonl": (
        ("unit/provisionerd/test_recorded_jobs.py", "prov_daemon_decoded.jsonl"),
        ("vectors/test_rpc_recordings.py", '[*PREFIXES, "prov_daemon"]'),
        ("vectors/test_rpc_conversations.py", '"prov_daemon"'),
    ),
    "prov_session_decoded.jsonl": (("vectors/test_rpc_recordings.py", "prov_session_decoded.jsonl"),),
    "pty.jsonl": (("vectors/test_recorded_tools.py", "pty.jsonl"),),
    "pty_init.json": (("unit/agent/test_services.py", "pty_init.json"),),
    "speedtest.json": (("vectors/test_recorded_tools.py", "speedtest.json"),),
    "sse_examples.jsonl": (("vectors/test_recorded_streams.py", "sse_examples.jsonl"),),
    "stun.json": (("vectors/test_mesh_wire.py", "stun.json"),),
    "tsmp.json": (("unit/mesh/core/wire/test_tsmp.py", "tsmp.json"),),
    "websocket_examples.jsonl": (("vectors/test_recorded_streams.py", "websocket_examples.jsonl"),),
    "wireguard.json": (("vectors/test_mesh_wire.py", "wireguard.json"),),
    **{f"prov_session_{job}.jsonl": (("vectors/test_rpc_recordings.py", f'"{job}"'),) for job in JOBS},
    **{
        f"{p}{kind}.jsonl": (("vectors/test_rpc_recordings.py", f'"{p}"'),)
        for p in RPC
        for kind in ("", "_yamux", "_decoded")
    },
}
BUILT_FROM = (
    'f"prov_session_{job}.jsonl"',
    'f"{prefix}.jsonl"',
    'f"{prefix}_yamux.jsonl"',
    'f"{prefix}_decoded.jsonl"',
)
"""Composition of names in test_rpc_recordings.py."""


def test_every_recording_has_replay() -> None:
    there = {path.name for path in WIRE.iterdir() if path.name != "README.md"}
    assert there - REPLAYS.keys() == set(), "write a test that replays these, and name it here"
    assert REPLAYS.keys() - there == set(), "these recordings are gone"


@pytest.mark.parametrize("name", sorted(REPLAYS))
def test_replay_reads_its_recording(name: str) -> None:
    for file, words in REPLAYS[name]:
        assert words in (TESTS / file).read_text(), f"{file} no longer loads {name}"


def test_names_are_composed_as_described() -> None:
    text = (TESTS / "vectors/test_rpc_recordings.py").read_text()
    assert [words for words in BUILT_FROM if words not in text] == []
