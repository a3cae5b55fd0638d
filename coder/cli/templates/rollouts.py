"""`coder templates rollout …`: staged rollouts of template versions."""

from __future__ import annotations

import sys
from urllib.parse import quote

from coder.api.people.groups import Group
from coder.api.templates.rollouts import TemplateRollout
from coder.api.templates.template_versions import TemplateVersion
from coder.api.templates.templates import Template
from coder.base.errors import CoderError
from coder.base.json_types import Json, JsonObject
from coder.cli.core import session
from coder.cli.core.command import Invocation, implements
from coder.cli.core.failures import add_action_to_errors
from coder.cli.core.options import OrgOption
from coder.cli.core.parsing import UsageError
from coder.cli.declarations.templates.rollouts import (
    NEXT,
    RESUME,
    ROLLBACK,
    START,
    STATUS,
    STOP,
    RolloutNextOptions,
    RolloutStartOptions,
    RolloutStatusOptions,
    RolloutStepOptions,
)
from coder.cli.templates.pickers import ask_version
from coder.cli.templates.template_settings import find_template
from coder.cli.ui.choices import is_interactive
from coder.cli.ui.output import Row, clock_time, confirm, print_json, print_rows, say
from coder.client.answers import read, read_rows
from coder.net.blocking import BlockingClient, HttpAnswer

_OPEN = frozenset({"running", "stopped"})


@implements(START)
def _start(invocation: Invocation[RolloutStartOptions]) -> int:
    options = invocation.options
    client = session.client(invocation)
    template = _find_template(invocation, client)
    if not options.template_version and not is_interactive():
        raise UsageError("Missing values for the required flags: template-version")
    name = options.template_version or ask_version(client, template)
    with add_action_to_errors("get template version by name"):
        path = f"/api/v2/templates/{template.id}/versions/{quote(name, safe='')}"
        version = read(client.request("GET", path), TemplateVersion)
    body: JsonObject = {
        "template_version_id": str(version.id),
        "failure_percent": options.failure_percent,
        "minimum_builds": options.minimum_builds,
    }
    if options.stages:
        body["stages"] = list[Json](map(_percent, options.stages))
    if options.group:
        with add_action_to_errors("group by org and name"):
            path = f"/api/v2/organizations/{template.organization_id}/groups/{quote(options.group, safe='')}"
            body["group_id"] = str(read(client.request("GET", path), Group).id)
    with add_action_to_errors("start rollout"):
        answer = client.request("POST", _path(template), json=body, expect=(201,))
    _print(invocation, answer, f'The rollout of version "{version.name}" is')
    return 0


def _percent(text: str) -> int:
    """Return the number of a stage such as `25` or `25%`."""
    number = text.strip().removesuffix("%")
    if not (number.isascii() and number.isdigit()):
        raise CoderError("usage", f"invalid stage: {text}", "Write stages as numbers, such as 5,25,100.")
    return int(number)


@implements(STATUS)
def _status(invocation: Invocation[RolloutStatusOptions]) -> int:
    client = session.client(invocation)
    template = _find_template(invocation, client)
    rollouts = _rollouts(client, template)
    if not rollouts and invocation.options.output != "json":
        say(f"Template {template.name} has had no rollout. Start one with `coder templates rollout start`.")
        return 0
    print_rows(invocation, lambda: [_row(rollout) for rollout, _ in rollouts], lambda: [raw for _, raw in rollouts])
    return 0


def _row(rollout: TemplateRollout) -> Row:
    """Return the cells; counts of a rollout that ended are unknown."""
    progress = rollout.progress
    rate = progress.failure_percent if progress is not None else None
    return {
        "version": rollout.template_version_name,
        "status": rollout.status.replace("_", " "),
        "stage": f"{rollout.percent}%",
        "stages": ",".join(map(str, rollout.stages)),
        "group": rollout.group_name or "-",
        "workspaces": progress.workspaces if progress is not None else "-",
        "offered": progress.offered if progress is not None else "-",
        "updated": progress.updated if progress is not None else "-",
        "succeeded": progress.builds_succeeded if progress is not None else "-",
        "failed": progress.builds_failed if progress is not None else "-",
        "unfinished": progress.builds_unfinished if progress is not None else "-",
        "failure rate": "-" if rate is None else f"{rate:g}%",
        "started at": clock_time(rollout.created_at),
        "started by": rollout.created_by_name,
        "message": rollout.message,
    }


@implements(NEXT)
def _next(invocation: Invocation[RolloutNextOptions]) -> int:
    client = session.client(invocation)
    template, rollout = _open_rollout(invocation, client)
    stopped = " ".join(("The rollout is stopped.", rollout.message)).strip() if rollout.status == "stopped" else ""
    if len([stage for stage in rollout.stages if stage > rollout.percent]) == 1:
        question = f"Make version {rollout.template_version_name} active for all workspaces of {template.name}?"
        confirm(invocation.options.yes, f"{stopped} {question}".strip())
    elif stopped:
        confirm(invocation.options.yes, f"{stopped} Go on to the next stage?")
    return _step(invocation, client, rollout, "next")


@implements(STOP)
def _stop(invocation: Invocation[RolloutStepOptions]) -> int:
    client = session.client(invocation)
    return _step(invocation, client, _open_rollout(invocation, client)[1], "stop")


@implements(RESUME)
def _resume(invocation: Invocation[RolloutStepOptions]) -> int:
    client = session.client(invocation)
    return _step(invocation, client, _open_rollout(invocation, client)[1], "resume")


@implements(ROLLBACK)
def _rollback(invocation: Invocation[RolloutStepOptions]) -> int:
    client = session.client(invocation)
    return _step(invocation, client, _open_rollout(invocation, client)[1], "rollback")


def _step(
    invocation: Invocation[RolloutStepOptions], client: BlockingClient, rollout: TemplateRollout, action: str
) -> int:
    """Change the rollout, unless it has another stage by now; go on only if it has not stopped meanwhile."""
    body: JsonObject = {"rollout_id": str(rollout.id), "action": action, "percent": rollout.percent}
    if action == "next":
        body["status"] = rollout.status
    with add_action_to_errors(f"{action} rollout"):
        answer = client.request("PATCH", f"/api/v2/templates/{rollout.template_id}/rollouts", json=body)
    _print(invocation, answer, f'The rollout of version "{rollout.template_version_name}" is')
    return 0


def _print(invocation: Invocation[RolloutStepOptions], answer: HttpAnswer, sentence: str) -> None:
    if invocation.options.output == "json":
        print_json(answer.json())
        return
    rollout = read(answer, TemplateRollout)
    sys.stdout.write(f"{sentence} {rollout.status.replace('_', ' ')} at {rollout.percent} percent.\n")
    if rollout.message:
        sys.stdout.write(f"{rollout.message}\n")


def _find_template(invocation: Invocation[OrgOption], client: BlockingClient) -> Template:
    return find_template(invocation, client, invocation.args[0], "get template by name")


def _path(template: Template) -> str:
    return f"/api/v2/templates/{template.id}/rollouts"


def _rollouts(client: BlockingClient, template: Template) -> list[tuple[TemplateRollout, Json]]:
    with add_action_to_errors("get rollouts"):
        return read_rows(client.request("GET", _path(template)), TemplateRollout)


def _open_rollout(
    invocation: Invocation[RolloutStepOptions], client: BlockingClient
) -> tuple[Template, TemplateRollout]:
    """Return the template and its rollout that is running or stopped. Raise CoderError if there is none."""
    template = _find_template(invocation, client)
    for rollout, _ in _rollouts(client, template):
        if rollout.status in _OPEN:
            return template, rollout
    raise CoderError(
        "no_rollout",
        f"template {template.name} has no rollout that is running or stopped",
        "Start one with `coder templates rollout start`.",
    )
