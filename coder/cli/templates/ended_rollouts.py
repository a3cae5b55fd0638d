"""The note of commands that make a version active: it ends the template's rollout."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from coder.api.templates.rollouts import TemplateRollout
from coder.api.templates.templates import Template
from coder.cli.ui.output import say
from coder.client.answers import read
from coder.net.blocking import BlockingClient
from coder.net.errors import HttpError

_OPEN = frozenset({"running", "stopped"})


@contextmanager
def note_ended_rollout(client: BlockingClient, template: Template) -> Iterator[None]:
    """After the body has made a version active, name the rollout that this ended."""
    before = _latest(client, template)
    yield
    if before is None or before.status not in _OPEN:
        return
    after = _latest(client, template)
    if after is not None and after.id == before.id and after.status not in _OPEN:
        name, stage = after.template_version_name, f"{after.percent} percent"
        say(f'This ended the rollout of version "{name}" at {stage}: it is {after.status.replace("_", " ")}.')


def _latest(client: BlockingClient, template: Template) -> TemplateRollout | None:
    """Return the latest rollout; none from servers that have no rollouts, and for callers who may not see them."""
    try:
        answer = client.request("GET", f"/api/v2/templates/{template.id}/rollouts")
    except HttpError as error:
        if error.status in {403, 404}:
            return None
        raise
    return next(iter(read(answer, list[TemplateRollout])), None)
