"""Attacks by programs in a workspace or by daemons: messages that no genuine peer sends, over real connections.

Each row is one message. It may be refused or harmless. It must not cause an internal error, close another peer's
connection, or store values that pages and metrics cannot show. Ids are in `test_foreign_ids_in_rpc.py`.
"""

from __future__ import annotations

import json
import os
from typing import Any

import pytest
import trio
from google.protobuf import text_format

from coder.domain.network.overlay import LEGACY_AGENT_ADDRESS, agent_address
from coder.mesh.keys import PrivateKey
from coder.rpc.errors import RpcClosed, RpcError
from coder.rpc.proto import agent_pb2, provisioner_pb2, provisionerd_pb2, tailnet_pb2
from coder.rpc.session import open_session
from tests.kit.agents.scripted_agent import AgentWorld, connected_agent, dial_link, workspace_world
from tests.kit.api import id_fields
from tests.kit.provisioners.scripted_provisioner import connected_daemon, ended, new_template, new_version, resource
from tests.kit.server.server_in_process import running_coderd

HUGE = 2**63 - 1
LONG = "x" * 100_000
NUL = r"a\000b"
AS_AGENT: tuple[tuple[str, str], ...] = (
    # not-a-number and infinite values
    *[
        ("UpdateStats", f"stats {{ connection_count: 1 connection_median_latency_ms: {value} }}")
        for value in ("nan", "inf", "-inf", "1e308", "-1e308")
    ],
    *[
        ("UpdateStats", f"stats {{ {name}: {value} }}")
        for name in (
            "rx_bytes",
            "tx_bytes",
            "rx_packets",
            "tx_packets",
            "connection_count",
            "session_count_ssh",
            "session_count_vscode",
            "session_count_jetbrains",
            "session_count_reconnecting_pty",
        )
        for value in (HUGE, -HUGE - 1)
    ],
    *[
        ("UpdateStats", f"stats {{ connection_count: 1 {field} }}")
        for field in (
            f'connections_by_proto {{ key: "{NUL}" value: 1 }}',
            f'connections_by_proto {{ key: "{LONG}" value: 1 }}',
            'connections_by_proto { key: "" value: -1 }',
            f'session_counts {{ key: "ssh" value: {HUGE} }}',
            f'session_counts {{ key: "{NUL}" value: 1 }}',
            f'session_counts {{ key: "a" value: {HUGE} }} session_counts {{ key: "b" value: {HUGE} }}',
            f'metrics {{ name: "{NUL}" type: GAUGE value: nan }}',
            'metrics { name: "x\\n# HELP evil" type: COUNTER value: -inf }',
            f'metrics {{ name: "m" type: GAUGE value: 1 labels {{ name: "a\\"}} 1\\nx" value: "{LONG}" }} }}',
        )
    ],
    # times outside of every calendar
    *[
        ("UpdateLifecycle", f"lifecycle {{ state: {state} changed_at {{ seconds: {at} nanos: {nanos} }} }}")
        for state in ("STARTING", "READY")
        for at, nanos in (
            (HUGE, 0),
            (-HUGE - 1, 0),
            (253402300799, 999999999),
            (-62135596800, 0),
            (0, -5),
            (1, 2147483647),
        )
    ],
    *[("UpdateLifecycle", f"lifecycle {{ state: {state} }}") for state in ("STATE_UNSPECIFIED", "CREATED", "OFF")],
    ("UpdateLifecycle", ""),
    # texts that a database or a page rejects
    *[
        ("UpdateStartup", f'startup {{ version: "{version}" expanded_directory: "{folder}" }}')
        for version, folder in (
            ("v2.0.0", NUL),
            ("v2.0.0", LONG),
            ("v2.0.0", "../../etc"),
            ("v2.0.0", "<script>alert(1)</script>"),
            (NUL, "/"),
            (LONG, "/"),
            ("v" + "9" * 5000 + ".0.0", "/"),
            ("v2.0.0-" + "a" * 50_000, "/"),
            ("", ""),
            ("v2.0.0\\n", "/"),
        )
    ],
    ("UpdateStartup", 'startup { version: "v2.0.0" subsystems: [ENVBOX, ENVBOX, EXECTRACE] }'),
    *[
        ("BatchUpdateMetadata", f'metadata {{ key: "{key}" result {{ value: "{value}" error: "{error}" }} }}')
        for key, value, error in (
            (NUL, "v", ""),
            (LONG, "v", ""),
            ("load", NUL, NUL),
            ("load", LONG, LONG),
            ("nobodys", "v", ""),
            ("", "", ""),
            ("load", "\\303\\251" * 3000, ""),
        )
    ],
    ("BatchUpdateMetadata", 'metadata { key: "load" result { age: -1 collected_at { seconds: 1 nanos: -1 } } }'),
    *[
        ("BatchCreateLogs", f'log_source_id: "{16 * chr(0)}" logs {{ output: "{text}" level: {level} }}')
        for text, level in ((NUL, "INFO"), (LONG, "ERROR"), ("\\033]0;title\\007", "INFO"), ("", "LEVEL_UNSPECIFIED"))
    ],
    ("BatchCreateLogs", 'log_source_id: "short" logs { output: "x" }'),
    ("BatchCreateLogs", "logs { }"),
    *[
        ("UpdateAppStatus", f'slug: "{slug}" state: WORKING message: "{message}" uri: "{uri}"')
        for slug, message, uri in (
            ("web", NUL, ""),
            ("web", "x" * 161, ""),
            ("web", "ok", NUL),
            ("web", "ok", "javascript:alert(1)"),
            ("web", "ok", LONG),
            (NUL, "", ""),
            ("nobodys", "", ""),
            (LONG, "", ""),
        )
    ],
    *[
        ("ReportConnection", f'connection {{ id: "{ident}" action: {action} type: {kind} ip: "{ip}" {more} }}')
        for ident, action, kind, ip, more in (
            ("0123456789abcdef", "CONNECT", "SSH", "::ffff:127.0.0.1", ""),
            ("0123456789abcde1", "DISCONNECT", "SSH", "1.2.3.4%eth0", 'reason: "a\\000b" status_code: -5'),
            ("0123456789abcde2", "DISCONNECT", "VSCODE", "fe80::1%" + "z" * 500, f'reason: "{LONG}"'),
            ("0123456789abcde3", "CONNECT", "JETBRAINS", "999.1.1.1", "timestamp { seconds: 253402300799 }"),
            ("0123456789abcde4", "CONNECT", "SSH", NUL, f"timestamp {{ seconds: {HUGE} }}"),
            ("0123456789abcde5", "DISCONNECT", "RECONNECTING_PTY", "", "status_code: 2147483647"),
            ("0123456789abcde6", "ACTION_UNSPECIFIED", "SSH", "", ""),
            ("short", "CONNECT", "SSH", "", ""),
        )
    ],
    ("ReportConnection", ""),
    *[
        ("ScriptCompleted", f"timing {{ {text} }}")
        for text in (
            "",
            "start { seconds: 2 } end { seconds: 1 }",
            f"start {{ seconds: {HUGE} }} end {{ seconds: {HUGE} }}",
            'script_id: "0123456789abcdef" start { seconds: 1 } end { seconds: 2 } exit_code: -2147483648',
        )
    ],
    *[
        ("PushResourcesMonitoringUsage", text)
        for text in (
            f"datapoints {{ memory {{ used: {HUGE} total: -1 }} }}",
            "datapoints { memory { used: -1 total: 0 } }",
            f'datapoints {{ volumes {{ volume: "{NUL}" used: 1 total: 0 }} }}',
            f'datapoints {{ volumes {{ volume: "{LONG}" used: {HUGE} total: {HUGE} }} }}',
            f"datapoints {{ collected_at {{ seconds: {HUGE} }} }}",
            "datapoints { }",
        )
    ],
    *[
        ("ReportBoundaryLogs", text)
        for text in (
            f'logs {{ http_request {{ url: "{LONG}" method: "A\\nB" }} }}',
            f'session_id: "{NUL}" logs {{ }}',
            f"logs {{ time {{ seconds: {HUGE} }} sequence_number: -1 }}",
        )
    ],
    ("DeleteSubAgent", ""),
    ("DeleteSubAgent", 'id: "0123456789abcdef"'),
    ("CreateSubAgent", 'name: "evil"'),
    ("PushContextState", f"version: {2**64 - 1}"),
    ("ListSubAgents", ""),
)


async def test_agent_messages_affect_own_agent() -> None:
    apps = [provisioner_pb2.App(slug="web", url="http://localhost:1")]
    metadata = [provisioner_pb2.Agent.Metadata(key="load", display_name="Load", script="x", interval=1, timeout=1)]
    wrong = []
    async with workspace_world(agent_fields={"apps": apps, "metadata": metadata}) as it, connected_agent(it) as agent:
        for method, text in AS_AGENT:
            name = f"Agent.{method}"
            request = text_format.Parse(text, id_fields.request_of(name))
            error_text = ""
            try:
                await agent.call(method, request, id_fields.reply_type(name))
            except (RpcError, RpcClosed) as error:
                error_text = str(error)
            if "internal" in error_text or "ended" in error_text:
                wrong.append(f"{method} {text[:120]}: {error_text}")
        await agent.call("GetManifest", agent_pb2.GetManifestRequest(), agent_pb2.Manifest)
        wrong += await _unreadable(it)
    assert len(AS_AGENT) > 100
    assert not wrong, "\n".join(wrong)


async def _unreadable(it: AgentWorld) -> list[str]:
    """Return the pages that cannot be shown any more: no success, or JSON with invalid numbers."""
    world, wrong = it.world, []
    day = "start_time=2026-01-01T00:00:00Z&end_time=2026-01-02T00:00:00Z"
    for path in (
        f"/api/v2/workspaces/{it.workspace['id']}",
        f"/api/v2/workspaceagents/{it.agent_id}",
        "/api/v2/workspaces",
        f"/api/v2/workspaceagents/{it.agent_id}/logs",
        "/api/v2/connectionlog?q=&limit=25",
        "/api/v2/deployment/stats",
        f"/api/v2/workspacebuilds/{it.workspace['latest_build']['id']}/timings",
        "/api/v2/debug/health",
        f"/api/v2/insights/templates?{day}",
        f"/api/v2/insights/user-latency?{day}",
        f"/api/v2/insights/user-activity?{day}",
        "/api/v2/insights/daus?tz_offset=0",
        f"/api/v2/workspaces/{it.workspace['id']}/timings",
    ):
        response = await world.get(path)
        try:
            json.loads(response.text, parse_constant=_no_number)
        except ValueError as error:
            wrong.append(f"{path}: {error}")
        if response.status_code != 200:
            wrong.append(f"{path}: {response.status_code} {response.text[:200]}")
    return wrong


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is no number of JSON")


def _node(**more: Any) -> dict[str, Any]:
    key = PrivateKey.generate(os.urandom).public
    return {"key": key.binary, "disco": f"discokey:{os.urandom(32).hex()}", "preferred_derp": 1, **more}


def _strange_nodes() -> list[tuple[str, dict[str, Any]]]:
    """Return nodes by which a peer tries to get the packets of others or to harm them."""
    return [
        ("everything", _node(addresses=["::/0"], allowed_ips=["::/0"])),
        ("everything of IPv4", _node(addresses=["0.0.0.0/0"], allowed_ips=["0.0.0.0/0"])),
        ("a network", _node(addresses=["fd7a:115c:a1e0::/48"], allowed_ips=["fd7a:115c:a1e0::/48"])),
        ("no prefix", _node(addresses=["fd7a:115c:a1e0::1"])),
        ("no address", _node(addresses=["'; DROP TABLE users; --/128"])),
        ("a zone", _node(addresses=["fe80::1%eth0/128"])),
        ("a bad length", _node(addresses=["fd7a::1/129"])),
        ("many addresses", _node(addresses=["fd7a::1/128"] * 5000)),
    ]


async def test_foreign_node_claims_are_refused() -> None:
    """Sent by agents and by clients, also with the address of another user's agent."""
    async with workspace_world() as it:
        theirs = str(agent_address(it.agent_id)) + "/128"
        another = ("another's", _node(addresses=[theirs], allowed_ips=[theirs]))
        every = ("every agent's", _node(addresses=[f"{LEGACY_AGENT_ADDRESS}/128"]))
        user = it.world.token
        links = (
            (f"/api/v2/workspaceagents/{it.agent_id}/coordinate?version=2.0", user, (every, another)),
            ("/api/v2/tailnet?version=2.0", user, (every,)),
            ("/api/v2/workspaceagents/me/rpc?version=2.10&role=other", it.token, ()),
        )
        heard = {}
        for path, token, nodes in links:
            for what, node in (*_strange_nodes(), *nodes):
                websocket = await dial_link(it.world, path, token=token)
                async with open_session(websocket, role="client") as session:
                    request = tailnet_pb2.CoordinateRequest(
                        update_self=tailnet_pb2.CoordinateRequest.UpdateSelf(node=tailnet_pb2.Node(**node))
                    )
                    async with session.open_stream(
                        "/coder.tailnet.v2.Tailnet/Coordinate", type(request), tailnet_pb2.CoordinateResponse
                    ) as stream:
                        await stream.send(request)
                        # A refused tunnel ends the stream, so its end can be awaited.
                        last = tailnet_pb2.CoordinateRequest.Tunnel(id=os.urandom(16))
                        await stream.send(tailnet_pb2.CoordinateRequest(add_tunnel=last))
                        with trio.fail_after(60):
                            try:
                                heard[path, what] = " ".join([message.error async for message in stream])
                            except RpcError as error:
                                heard[path, what] = error.text
        refused = ("Addresses: ", "Node.addresses has 5000 elements")
        accepted = [
            f"{path} {what}: {reply}"
            for (path, what), reply in heard.items()
            if not any(item in reply for item in refused)
        ]
        assert not accepted, "\n".join(accepted)


AS_DAEMON: tuple[tuple[str, str], ...] = (
    *[
        ("UpdateJob", text)
        for text in (
            f'logs {{ output: "{NUL}" stage: "{NUL}" level: 99 source: 99 created_at: {HUGE} }}',
            f'readme: "{LONG}"',
            r'readme: "\377\376\000"',
            f'template_variables {{ name: "{NUL}" }}',
            'template_variables { name: "" }',
            f'user_variable_values {{ name: "{NUL}" value: "{NUL}" }}',
            f'workspace_tags {{ key: "{NUL}" value: "{NUL}" }}',
            'workspace_tags { key: "owner" value: "\\"x\\"" }',
            'workspace_tags { key: "scope" value: "organization" }',
            f'workspace_tags {{ key: "a" value: "{"(" * 20_000}" }}',
            'workspace_state: "not for an import"',
        )
    ],
    ("FailJob", f'error: "{NUL}" error_code: "{NUL}"'),
    ("FailJob", ""),
    ("FailJob", f'error: "{LONG}"'),
    *[("CommitQuota", f"daily_cost: {value}") for value in (-1, -2147483648, 2147483647)],
    *[
        ("CompleteJob", text)
        for text in (
            "",
            "workspace_build { }",
            "template_dry_run { }",
            f'template_import {{ start_resources {{ name: "{NUL}" }} }}',
            'template_import { start_resources { agents { name: "a" } agents { name: "A" } } }',
            'template_import { start_resources { agents { name: "a" token: "no uuid" } } }',
            f'template_import {{ rich_parameters {{ name: "{NUL}" type: "string" }} }}',
            'template_import { rich_parameters { name: "a" type: "nonsense" } }',
            'template_import { rich_parameters { name: "a" type: "number" default_value: "NaN" } }',
            f'template_import {{ presets {{ name: "{NUL}" }} }}',
            'template_import { presets { name: "p" } presets { name: "p" } }',
            'template_import { presets { name: "p" prebuild { instances: 2147483647 } } }',
            'template_import { external_auth_providers { id: "not-configured" } }',
            'template_import { external_auth_providers { id: "../../x" } }',
            r'template_import { plan: "\377 no json" }',
            'template_import { module_files_hash: "0123" }',
        )
    ],
)


@pytest.mark.parametrize("number", range(0, len(AS_DAEMON), 10))
async def test_daemon_messages_affect_own_job(number: int) -> None:
    wrong = []
    async with running_coderd(first_user=True) as world, connected_daemon(world) as daemon:
        for method, text in AS_DAEMON[number : number + 10]:
            version = await new_version(world)
            job = await daemon.acquire()
            name = f"ProvisionerDaemon.{method}"
            request: Any = text_format.Parse(text, id_fields.request_of(name))
            request.job_id = job.job_id
            try:
                await daemon.call(method, request, id_fields.reply_type(name))
            except (RpcError, RpcClosed) as error:
                if "internal" in str(error) or "ended" in str(error):
                    wrong.append(f"{method} {text[:120]}: {error}")
            try:
                await daemon.fail(job, "over")
            except RpcError as error:
                assert "already completed" in error.text
            result = await ended(world, f"/api/v2/templateversions/{version['id']}")
            for more in ("", "/logs", "/resources", "/rich-parameters", "/presets", "/variables", "/external-auth"):
                response = await world.get(f"/api/v2/templateversions/{result['id']}{more}")
                if response.status_code not in {200, 404}:
                    wrong.append(f"{method} {text[:120]}: {more} {response.status_code} {response.text[:200]}")
        assert not (await world.get("/healthz")).is_error
    assert not wrong, "\n".join(wrong)


async def test_invalid_build_result_fails_build() -> None:
    """A build with a report that cannot be stored fails with a message; it does not run for ever."""
    at = f"seconds: {HUGE}"
    reports = [
        f'timings {{ stage: "{NUL}" source: "{NUL}" action: "a" resource: "{LONG}" start {{ }} end {{ }} }}',
        f"timings {{ start {{ {at} }} end {{ {at} }} }}",
        f'resource_replacements {{ resource: "{NUL}" }}',
        f'ai_tasks {{ id: "{NUL}" }}',
        f'modules {{ source: "{NUL}" key: "a" }}',
        "resources { daily_cost: -1 }",
        f'resources {{ name: "a" metadata {{ key: "{NUL}" value: "b" }} }}',
        'resources { agents { name: "a" apps { slug: "a" } apps { slug: "a" } } }',
        'resources { agents { name: "a" connection_timeout_seconds: -2147483648 order: 9223372036854775807 } }',
    ]
    wrong = []
    async with running_coderd(first_user=True) as world, connected_daemon(world) as daemon:
        template = await new_template(world)
        await daemon.complete_import(await daemon.acquire(), start_resources=[resource("box")])
        for number, text in enumerate(reports):
            body = {"name": f"w{number}", "template_id": template["id"]}
            created = await world.post("/api/v2/users/me/workspaces", body)
            assert created.status_code == 201, created.text
            job = await daemon.acquire()
            result = text_format.Parse(text, provisionerd_pb2.CompletedJob.WorkspaceBuild())
            request = provisionerd_pb2.CompletedJob(job_id=job.job_id, workspace_build=result)
            try:
                await daemon.call("CompleteJob", request)
            except RpcError as error:
                wrong.append(f"{text[:120]}: {error}")
                await daemon.fail(job, "over")
            build = created.json()["latest_build"]["id"]
            for path in (f"workspaces/{created.json()['id']}", f"workspacebuilds/{build}/timings"):
                response = await world.get(f"/api/v2/{path}")
                if response.status_code != 200:
                    wrong.append(f"{text[:120]}: {path} {response.status_code} {response.text[:200]}")
    assert not wrong, "\n".join(wrong)
