"""JSON shapes of build durations, shared by server and client."""

from __future__ import annotations

from coder.api.agents.agent_timings import AgentConnectionTiming, AgentScriptTiming
from coder.api.base.struct import ApiStruct
from coder.api.provisioning.job_timings import ProvisionerTiming


class WorkspaceBuildTimings(ApiStruct):
    provisioner_timings: list[ProvisionerTiming]
    agent_script_timings: list[AgentScriptTiming]
    agent_connection_timings: list[AgentConnectionTiming]
