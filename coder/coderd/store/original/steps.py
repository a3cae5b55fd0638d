"""All steps of the import, in the order of the references between our tables."""

from __future__ import annotations

from coder.coderd.store.original import agent_steps, people_steps, template_steps, workspace_steps

STEPS = (
    *people_steps.STEPS,
    *template_steps.STEPS,
    *workspace_steps.WORKSPACES,
    *agent_steps.STEPS,
    *workspace_steps.OTHERS,
)
