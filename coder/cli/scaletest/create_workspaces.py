"""`coder exp scaletest create-workspaces`: creates workspaces concurrently and times each until its agents are
ready."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import trio

from coder.api.templates.templates import Template
from coder.api.workspaces.workspaces import Workspace
from coder.base.errors import CoderError, explain_error
from coder.base.json_types import Json, JsonObject
from coder.base.threads import run_trio
from coder.cli.core import session
from coder.cli.core.command import Invocation, implements
from coder.cli.declarations.scaletest.create_workspaces import CREATE_WORKSPACES, ScaletestCreateWorkspacesOptions
from coder.cli.scaletest.cleanup import POLL, now, remove_all, username
from coder.cli.scaletest.ledger import Ledger, LedgerEntry, new_names
from coder.cli.scaletest.runs import (
    MAX_JOBS,
    Job,
    ScaletestRun,
    announce_runs,
    check_concurrency,
    check_outputs,
    run_all,
    with_client,
    write_report,
)
from coder.cli.scaletest.terminal import open_terminal
from coder.cli.ui.output import say
from coder.cli.ui.progress import ENDED
from coder.cli.workspaces.parameters import pairs, values_of_file
from coder.client.answers import read
from coder.client.patience import aread_patiently
from coder.client.target import choose_agent
from coder.net.errors import HttpError

if TYPE_CHECKING:
    from coder.client.answers import Answer
    from coder.net.http1 import HttpClient


@implements(CREATE_WORKSPACES)
def _run(invocation: Invocation[ScaletestCreateWorkspacesOptions]) -> int:
    check_outputs(invocation)
    if not invocation.options.template:
        raise CoderError("scaletest", "--template is required", "List the templates with `coder templates list`.")
    if not 1 <= invocation.options.count <= MAX_JOBS:
        raise CoderError("scaletest", f"--count must be from 1 to {MAX_JOBS}")
    if not invocation.options.no_cleanup:
        check_concurrency(invocation.options.cleanup_concurrency, "cleanup-concurrency")
    return run_trio(with_client, invocation, partial(_test, invocation))


async def _test(invocation: Invocation[ScaletestCreateWorkspacesOptions], http: HttpClient) -> int:
    ledger = Ledger(session.config_dir(invocation), http.policy.url)
    template = await _template(http, invocation.options.template)
    path = invocation.options.rich_parameter_file
    parameter_values = {
        **(values_of_file(Path(path)) if path else {}),
        **pairs(invocation.options.parameter, "parameter"),
    }
    values = [{"name": name, "value": str(value)} for name, value in parameter_values.items()]
    me = await username(http)
    names = new_names(invocation.options.count)
    began = now()
    announce_runs(invocation.options.count, "workspaces", invocation.options.concurrency)
    jobs: list[Job] = [(name, partial(_make, invocation, http, ledger, template, values, me, name)) for name in names]
    cleaned = 0
    try:
        runs = await run_all(
            jobs,
            concurrency=invocation.options.concurrency,
            timeout=invocation.options.timeout.total_seconds(),
            job_timeout=invocation.options.job_timeout.total_seconds(),
        )
    finally:  # after any end of the runs, and before the report, which can fail on a full disk or a closed pipe
        if not invocation.options.no_cleanup:
            cleaned = await _clean(invocation, http, ledger, names)
    code = write_report(invocation, "create-workspaces", began, runs)
    if sum(bool(run.error) for run in runs) <= invocation.options.max_failures:
        code = 0
    return cleaned or code


async def _clean(
    invocation: Invocation[ScaletestCreateWorkspacesOptions], http: HttpClient, ledger: Ledger, names: list[str]
) -> int:
    """Clean up and return the exit status: 1 if something remains."""
    try:
        return await remove_all(invocation, http, ledger, names=names)
    except (CoderError, OSError) as error:
        say(f"Some resources were not deleted: {explain_error(error)}\nDelete them with `coder exp scaletest cleanup`.")
        return 1


async def _template(http: HttpClient, name: str) -> Template:
    for template in read(await http.request("GET", "/api/v2/templates"), list[Template]):
        if name in (template.name, str(template.id)):
            return template
    raise CoderError("no_template", f'no template found with the name "{name}"')


async def _make(
    invocation: Invocation[ScaletestCreateWorkspacesOptions],
    http: HttpClient,
    ledger: Ledger,
    template: Template,
    values: list[dict[str, str]],
    me: str,
    name: str,
    run: ScaletestRun,
) -> None:
    owner = (me or "me") if invocation.options.use_host_login else await _new_user(http, ledger, template, me, name)
    began = trio.current_time()
    entry = ledger.record("workspace", owner, name, me)
    body: JsonObject = {"name": name, "template_id": str(template.id), "rich_parameter_values": values}
    path = f"/api/v2/users/{quote(owner, safe='')}/workspaces"
    workspace = await _built(http, read(await _post_recorded(http, ledger, entry, path, body), Workspace))
    run.figures["build_ms"] = round((trio.current_time() - began) * 1000, 3)
    if not invocation.options.no_wait_for_agents:
        await _wait_agents(http, workspace)
        run.figures["agents_ms"] = round((trio.current_time() - began) * 1000, 3)
    if invocation.options.run_command:
        run.figures["command_output"] = await _run_command(invocation, http, workspace)


async def _new_user(http: HttpClient, ledger: Ledger, template: Template, me: str, name: str) -> str:
    entry = ledger.record("user", name, name, me)
    body: JsonObject = {
        "email": f"{name}@scaletest.invalid",
        "username": name,
        "password": f"Aa1!{secrets.token_urlsafe(24)}",
        "organization_ids": [str(template.organization_id)],
    }
    await _post_recorded(http, ledger, entry, "/api/v2/users", body)
    return name


async def _post_recorded(
    http: HttpClient, ledger: Ledger, entry: LedgerEntry, path: str, body: Mapping[str, Json]
) -> Answer:
    """Send a POST request and record in the ledger whether the server created or rejected the resource."""
    try:
        answer = await http.request("POST", path, json=body)
    except HttpError as error:
        # Any other error can come from a proxy in between, while the server still processes the request.
        if error.is_enveloped and 400 <= error.status < 500:
            ledger.forget(entry)
        raise
    ledger.answered(entry)
    return answer


async def _built(http: HttpClient, workspace: Workspace) -> Workspace:
    while workspace.latest_build.job.status not in ENDED:
        await trio.sleep(POLL)
        workspace = read(await aread_patiently(http, f"/api/v2/workspaces/{workspace.id}"), Workspace)
    job = workspace.latest_build.job
    if job.status != "succeeded":
        raise CoderError("scaletest", f"its build has {job.status}: {job.error or 'see its log'}")
    return workspace


async def _wait_agents(http: HttpClient, workspace: Workspace) -> None:
    """Wait until the agents are connected and their start scripts have ended."""
    while True:
        agents = [agent for resource in workspace.latest_build.resources for agent in resource.agents or []]
        if any(agent.lifecycle_state in ("start_error", "start_timeout") for agent in agents):
            raise CoderError("scaletest", "the start scripts of an agent failed")
        if all(agent.status == "connected" and agent.lifecycle_state == "ready" for agent in agents):
            return
        await trio.sleep(POLL)
        workspace = read(await aread_patiently(http, f"/api/v2/workspaces/{workspace.id}"), Workspace)


async def _run_command(
    invocation: Invocation[ScaletestCreateWorkspacesOptions], http: HttpClient, workspace: Workspace
) -> str:
    """Return the command's output, bounded in size."""

    output = b""
    limit = invocation.options.run_timeout.total_seconds()
    with trio.move_on_after(limit) as waiting:
        agent = choose_agent(workspace, "")
        async with open_terminal(http.policy, agent.id, invocation.options.run_command) as terminal:
            while (message := await terminal.receive_message()) is not None:
                output = (output + (message if isinstance(message, bytes) else message.encode()))[-(64 << 10) :]
    text = output.decode("utf-8", "replace")
    if waiting.cancelled_caught:
        raise CoderError("scaletest", f"the command did not end within {limit:g} s")
    if invocation.options.run_expect_output not in text:
        raise CoderError("scaletest", "the command's output does not contain the expected text")
    return text
