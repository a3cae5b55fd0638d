"""coder_script, coder_env, coder_devcontainer: scripts of an agent, its variables, its dev containers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from coder.domain.foundation.cron import CronError, parse_script_cron
from coder.provisionerd.terraform.provider.checks import at_least, not_empty, one_of
from coder.provisionerd.terraform.provider.diagnostics import Diagnostic, error, warning
from coder.provisionerd.terraform.provider.kinds import Body, ProviderContext, ResourceKind
from coder.provisionerd.terraform.provider.readers import checked_text
from coder.provisionerd.terraform.provider.schema import BOOL, NUMBER, STRING, Attribute, Schema
from coder.provisionerd.terraform.provider.values import Value

_ENV_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")


def _check_cron(value: Value, _key: str) -> Iterator[str | Diagnostic]:
    line = checked_text(value)
    if len(line.split()) == 5:
        yield warning(
            f"The cron expression '{line}' appears to be in Unix 5-field format. Coder uses 6-field format "
            "(seconds minutes hours day month day-of-week). Consider prefixing with '0 ' to run at the start of each "
            f"minute: '0 {line}'"
        )
    try:
        parse_script_cron(line)
    except CronError as problem:
        yield f"{line} is not a valid cron expression: {problem.message}"


def _check_env_name(value: Value, key: str) -> Iterator[str]:
    if not _ENV_NAME.fullmatch(checked_text(value)):
        yield f"invalid value for {key} (must be a valid environment variable name)"


def _create_script(_context: ProviderContext, _config: Body, state: Body) -> Iterator[Diagnostic]:
    if not (state["run_on_start"] or state["run_on_stop"] or state["cron"]):
        yield error('at least one of "run_on_start", "run_on_stop", or "cron" must be set')
    elif state["start_blocks_login"] and not state["run_on_start"]:
        yield error('"start_blocks_login" can only be set if "run_on_start" is "true"')


def _create_devcontainer(context: ProviderContext, _config: Body, state: Body) -> Iterator[Diagnostic]:
    state["subagent_id"] = context.new_id()
    return iter(())


script = ResourceKind(
    Schema(
        {
            "id": Attribute(STRING, "optional+computed"),
            "agent_id": Attribute(STRING, "required", description="Agent that runs the script."),
            "display_name": Attribute(STRING, "required", description="Name that users see in the logs."),
            "script": Attribute(STRING, "required", description="Text of the script."),
            "log_path": Attribute(STRING, description="File for the script's output."),
            "icon": Attribute(STRING, description="URL of an image."),
            "cron": Attribute(STRING, check=_check_cron, description="Cron schedule, seconds first."),
            "start_blocks_login": Attribute(BOOL, default=False, description="Whether logins wait until it has ended."),
            "run_on_start": Attribute(BOOL, default=False, description="Whether to run when the agent starts."),
            "run_on_stop": Attribute(BOOL, default=False, description="Whether to run when the agent stops."),
            "timeout": Attribute(NUMBER, default=0, check=at_least(1), description="Seconds it may take."),
        },
        description="A script an agent runs at start, at stop or by a schedule.",
    ),
    create=_create_script,
)

env = ResourceKind(
    Schema(
        {
            "id": Attribute(STRING, "optional+computed"),
            "agent_id": Attribute(STRING, "required", description="Agent that gets the variable."),
            "name": Attribute(STRING, "required", check=_check_env_name, description="Name of the variable."),
            "value": Attribute(STRING, description="Value of the variable."),
            "merge_strategy": Attribute(
                STRING,
                default="replace",
                check=one_of("replace", "append", "prepend", "error"),
                description="Strategy for a variable that is set twice.",
            ),
        },
        description="An environment variable of an agent.",
    )
)

devcontainer = ResourceKind(
    Schema(
        {
            "id": Attribute(STRING, "optional+computed"),
            "agent_id": Attribute(STRING, "required", description="Agent that starts the container."),
            "workspace_folder": Attribute(STRING, "required", check=not_empty, description="Folder to mount."),
            "config_path": Attribute(STRING, description="devcontainer.json, when it is not in its default location."),
            "subagent_id": Attribute(STRING, "computed", description="The agent inside the container."),
        },
        description="A dev container an agent starts.",
    ),
    create=_create_devcontainer,
)
