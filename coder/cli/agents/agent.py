"""`coder agent`: runs the workspace agent, as the init script starts it."""

from __future__ import annotations

from coder.cli.agents.reaper import reap_if_first
from coder.cli.core.command import Invocation, implements
from coder.cli.declarations.agents.agent import AGENT, AgentOptions


@implements(AGENT)
def _run(invocation: Invocation[AgentOptions]) -> int:
    if invocation.options.can_take_over:
        from coder.agent.upgrade.handover import FORMAT

        return 0 if invocation.options.can_take_over == FORMAT else 1
    reap_if_first(no_reap=invocation.options.no_reap)
    from coder.cli.agents.agent_process import run_agent  # after the fork, and absent on Windows

    return run_agent(invocation)
