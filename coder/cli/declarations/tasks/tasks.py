"""Declarations of the commands of `coder task`."""

from __future__ import annotations

from coder.cli.core.command import Command
from coder.cli.core.options import Options, OrgOption, TableOptions, YesOption, column_option, option, output_option

STATUSES = ("pending", "initializing", "active", "paused", "error", "unknown")
COLUMNS = (
    "id",
    "organization id",
    "owner id",
    "owner name",
    "owner avatar url",
    "name",
    "display name",
    "template id",
    "template version id",
    "template name",
    "template display name",
    "template icon",
    "workspace id",
    "workspace name",
    "workspace status",
    "workspace build number",
    "workspace agent id",
    "workspace agent lifecycle",
    "workspace agent health",
    "workspace app id",
    "initial prompt",
    "status",
    "state",
    "message",
    "created at",
    "updated at",
    "state changed",
)
LOG_COLUMNS = ("id", "content", "type", "time")
STDIN: bool = option(
    False,
    "Read the input from standard input instead of the arguments.",
)


class StdinOption(Options):
    """The option `--stdin`."""

    stdin: bool = STDIN


class TaskCreateOptions(OrgOption, StdinOption):
    """Options of `coder task create`."""

    name: str = option(
        "",
        "Name of the task; generated from its input if not set.",
    )
    owner: str = option(
        "me",
        'Owner of the task, by name or id; "me" is the current user.',
    )
    template: str = option(
        "",
        "Name of the template for the task's workspace; required if several support tasks.",
        env="CODER_TASK_TEMPLATE_NAME",
    )
    template_version: str = option(
        "",
        "Name of the template version; defaults to the active version.",
        env="CODER_TASK_TEMPLATE_VERSION",
    )
    preset: str = option(
        "none",
        'Use the parameter values of this preset; "none" uses the template\'s defaults.',
        env="CODER_TASK_PRESET_NAME",
    )
    stdin: bool = STDIN
    quiet: bool = option(
        False,
        "Print only the id of the new task, for scripts.",
        short="q",
    )


class TaskListOptions(TableOptions):
    """Options of `coder task list`."""

    status: str = option(
        "",
        "List only tasks in this state.",
        choices=STATUSES,
    )
    all: bool = option(
        False,
        "List all tasks you can see, not only your own.",
        short="a",
    )
    user: str = option(
        "",
        "List the tasks of this user, by name or id.",
    )
    quiet: bool = option(
        False,
        "Print only ids, one per line, for scripts.",
        short="q",
    )
    column: tuple[str, ...] = column_option(COLUMNS, ("name", "status", "state", "state changed", "message"))
    output: str = output_option()


class TaskLogsOptions(TableOptions):
    """Options of `coder task logs`."""

    column: tuple[str, ...] = column_option(LOG_COLUMNS, ("type", "content"))
    output: str = output_option()


class TaskResumeOptions(YesOption):
    """Options of `coder task resume`."""

    no_wait: bool = option(
        False,
        "Return when the start is queued instead of waiting for it to finish.",
    )


class TaskStatusOptions(TableOptions):
    """Options of `coder task status`."""

    watch: bool = option(
        False,
        "Print every state change until the task ends.",
    )
    column: tuple[str, ...] = column_option(
        (*COLUMNS, "healthy"),
        ("state changed", "status", "healthy", "state", "message"),
    )
    output: str = output_option()


CREATE = Command(
    words="task create",
    summary="Create a task",
    options=TaskCreateOptions,
    usage="[input]",
    max_args=1,
    examples=(
        ("Create a task", 'coder task create "Fix the flaky test" --template claude'),
        (
            "Read the prompt from standard input and print only the id",
            "coder task create --template claude --stdin --quiet",
        ),
    ),
)

DELETE = Command(
    words="task delete",
    summary="Delete tasks",
    options=YesOption,
    usage="<task>...",
    min_args=1,
    examples=(("Delete two tasks", "coder task delete first-task second-task -y"),),
)

LIST = Command(
    words="task list",
    summary="List tasks",
    options=TaskListOptions,
    max_args=0,
    examples=(
        ("List your tasks", "coder task list"),
        ("List the active tasks of all users as JSON", "coder task list --all --status active -o json"),
    ),
)

LOGS = Command(
    words="task logs",
    summary="Show the conversation of a task",
    options=TaskLogsOptions,
    usage="<task>",
    min_args=1,
    max_args=1,
    examples=(("Print the conversation of a task", "coder task logs my-task"),),
)

PAUSE = Command(
    words="task pause",
    summary="Pause a task and stop its workspace",
    options=YesOption,
    usage="<task>",
    min_args=1,
    max_args=1,
    examples=(("Pause a task and stop its workspace", "coder task pause my-task"),),
)

RESUME = Command(
    words="task resume",
    summary="Resume a paused task",
    options=TaskResumeOptions,
    usage="<task>",
    min_args=1,
    max_args=1,
    examples=(
        ("Resume a paused task", "coder task resume my-task"),
        ("Resume without waiting for the workspace", "coder task resume my-task --no-wait"),
    ),
)

SEND = Command(
    words="task send",
    summary="Send input to a task",
    options=StdinOption,
    usage="<task> [input]",
    min_args=1,
    max_args=2,
    examples=(
        ("Send more input to a task", 'coder task send my-task "Also run the linter"'),
        ("Read the input from standard input", "coder task send my-task --stdin"),
    ),
)

STATUS = Command(
    words="task status",
    summary="Show the status of a task",
    options=TaskStatusOptions,
    usage="<task>",
    min_args=1,
    max_args=1,
    examples=(
        ("Show the state of a task", "coder task status my-task"),
        ("Watch a task until it finishes", "coder task status my-task --watch"),
    ),
)
