"""Limits of messages from agents, daemons, proxies and clients: the table for `message_limits.py`.

The defaults are far above genuine use; rows are fields where genuine messages are larger, or where stored or displayed
content should stay small. A text that later code cuts, counts or rejects with its own message (logs, states, failure
reports) may fill its message.
"""

from __future__ import annotations

from coder.rpc.drpc import MAX_PACKET
from coder.rpc.message_limits import FieldDefaults, MessageLimits

MAX_TOTAL_ELEMENTS = 32_768
"Elements of a message, all its lists and maps together."
_SOURCE = 1 << 20
"Bytes of texts in templates: scripts, values, defaults, descriptions."
_RESOURCES = 8192
"Resources of one transition: states with five thousand exist and fit a message, with ten thousand they hardly fit."

_PACKAGES = {
    "coder.agent.v2": FieldDefaults(elements=1024, size=64 << 10),
    "coder.tailnet.v2": FieldDefaults(elements=1024, size=4 << 10),
    "coder.overlay.v1": FieldDefaults(elements=1024, size=4 << 10),
    "provisionerd": FieldDefaults(elements=4096, size=256 << 10),
    "provisioner": FieldDefaults(elements=4096, size=256 << 10),
    "google.protobuf": FieldDefaults(elements=8192, size=_SOURCE),
}

_ELEMENTS = {
    # A genuine agent sends at most 1 MiB at a time and counts 21 bytes for each line.
    "coder.agent.v2.BatchCreateLogsRequest.logs": 65_536,
    # Each is looked up or stored in a row.
    "coder.agent.v2.Stats.connections_by_proto": 128,
    "coder.agent.v2.Startup.subsystems": 64,
    "coder.agent.v2.Stats.metrics": 8192,
    "coder.agent.v2.PushContextStateRequest.resources": 8192,
    "coder.agent.v2.MCPServerBody.tools": 8192,
    # Every peer with an agent receives all servers of the map and processes them repeatedly.
    "coder.tailnet.v2.Node.derp_latency": 512,
    "coder.tailnet.v2.Node.derp_forced_websocket": 256,
    "coder.tailnet.v2.Node.addresses": 64,
    "coder.tailnet.v2.Node.allowed_ips": 64,
    # Lines that a daemon buffered while its link was away; the job's log has its own limit.
    "provisionerd.UpdateJobRequest.logs": 131_072,
    "provisionerd.UpdateJobRequest.workspace_tags": 256,
    "provisionerd.CompletedJob.WorkspaceBuild.resources": _RESOURCES,
    "provisionerd.CompletedJob.WorkspaceBuild.resource_replacements": _RESOURCES,
    "provisionerd.CompletedJob.TemplateImport.start_resources": _RESOURCES,
    "provisionerd.CompletedJob.TemplateImport.stop_resources": _RESOURCES,
    "provisionerd.CompletedJob.TemplateDryRun.resources": _RESOURCES,
    # Four for each resource of the largest state, and more.
    "provisionerd.CompletedJob.WorkspaceBuild.timings": 65_536,
    "provisionerd.FailedJob.WorkspaceBuild.timings": 65_536,
}

_SIZES = {
    "coder.agent.v2.Log.output": MAX_PACKET,
    "coder.agent.v2.Startup.version": 256,
    "coder.agent.v2.Startup.expanded_directory": 4096,
    "coder.agent.v2.Stats.ConnectionsByProtoEntry.key": 128,
    "coder.agent.v2.Connection.ip": 256,
    "coder.agent.v2.Connection.reason": 8192,
    "coder.agent.v2.UpdateAppStatusRequest.uri": 8192,
    "coder.agent.v2.InstructionFileBody.content": MAX_PACKET,
    "coder.agent.v2.SkillMetaBody.meta": MAX_PACKET,
    "coder.tailnet.v2.Node.key": 256,
    "coder.tailnet.v2.Node.disco": 512,
    "coder.tailnet.v2.Node.DerpLatencyEntry.key": 128,
    # Answer of a proxy in place of a relay: the whole page. `node_from_proto` cuts it.
    "coder.tailnet.v2.Node.DerpForcedWebsocketEntry.value": MAX_PACKET,
    "coder.tailnet.v2.Node.addresses": 256,
    "coder.tailnet.v2.Node.allowed_ips": 256,
    "coder.tailnet.v2.Node.endpoints": 256,
    "provisionerd.Log.output": MAX_PACKET,
    "provisionerd.Log.stage": 1024,
    "provisionerd.UpdateJobRequest.readme": MAX_PACKET,
    "provisionerd.UpdateJobRequest.workspace_state": MAX_PACKET,
    "provisionerd.CompletedJob.WorkspaceBuild.state": MAX_PACKET,
    "provisionerd.CompletedJob.TemplateImport.plan": MAX_PACKET,
    "provisionerd.CompletedJob.TemplateImport.module_files": MAX_PACKET,
    "provisionerd.FailedJob.WorkspaceBuild.state": MAX_PACKET,
    "provisionerd.FailedJob.error": MAX_PACKET,
    "provisionerd.FailedJob.error_code": 256,
    "provisioner.ChunkPiece.data": MAX_PACKET,
    "provisioner.TemplateVariable.description": _SOURCE,
    "provisioner.TemplateVariable.type": _SOURCE,
    "provisioner.TemplateVariable.default_value": _SOURCE,
    "provisioner.VariableValue.value": _SOURCE,
    "provisioner.Resource.Metadata.value": _SOURCE,
    "provisioner.Agent.EnvEntry.value": _SOURCE,
    "provisioner.Agent.Metadata.script": _SOURCE,
    "provisioner.Env.value": _SOURCE,
    "provisioner.Script.script": _SOURCE,
    "provisioner.App.command": _SOURCE,
    "provisioner.RichParameter.description": _SOURCE,
    "provisioner.RichParameter.default_value": _SOURCE,
    "provisioner.RichParameterOption.description": _SOURCE,
    "provisioner.RichParameterOption.value": _SOURCE,
    "provisioner.Preset.description": _SOURCE,
    "provisioner.PresetParameter.value": _SOURCE,
}

REQUEST_LIMITS = MessageLimits(_PACKAGES, _ELEMENTS, _SIZES, total=MAX_TOTAL_ELEMENTS)
