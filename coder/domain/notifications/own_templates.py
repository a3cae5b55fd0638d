"""Templates of notifications of events that upstream lacks."""

from __future__ import annotations

from uuid import UUID

from coder.domain.notifications.message_template import MessageTemplate

ROLLOUT_STOPPED = UUID("5b0cf1a4-7a31-4c0e-9d52-3f6e1b8a90d7")

OWN: tuple[MessageTemplate, ...] = (
    MessageTemplate(
        id=ROLLOUT_STOPPED,
        name="Template Rollout Stopped",
        group="Template Events",
        title='The rollout of "{{.Labels.template}}" was stopped',
        body=(
            "The rollout of version **{{.Labels.template_version}}** of template **{{.Labels.template}}** was stopped "
            "at {{.Labels.percent}} percent: {{.Labels.reason}}. Workspaces that have the version keep it until you "
            "roll back."
        ),
        actions=(
            '[{"url": "{{base_url}}/templates/{{.Labels.org}}/{{.Labels.template}}/versions", '
            '"label": "View rollout"}, '
            '{"url": "{{base_url}}/workspaces?filter=status:failed+template:{{.Labels.template}}", '
            '"label": "View failed workspaces"}]'
        ),
    ),
)
