"""Declaration of `coder exp scaletest create-workspaces`."""

from __future__ import annotations

from datetime import timedelta

from coder.cli.core.command import Command
from coder.cli.core.options import option
from coder.cli.declarations.scaletest.runs import CleanupOptions, RunOptions
from coder.cli.declarations.workspaces.parameters import PARAMETER_FILE, ParameterFileOption


class ScaletestCreateWorkspacesOptions(RunOptions, CleanupOptions, ParameterFileOption):
    """Options of `coder exp scaletest create-workspaces`."""

    count: int = option(
        1,
        "Number of workspaces to create for the test.",
        env="CODER_SCALETEST_COUNT",
        short="c",
    )
    template: str = option(
        "",
        "Name of the template for all workspaces of the test.",
        env="CODER_SCALETEST_TEMPLATE",
        short="t",
    )
    parameter: tuple[str, ...] = option(
        (),
        "Value of a parameter, like region=eu, for all workspaces; may be repeated.",
        env="CODER_RICH_PARAMETER",
    )
    rich_parameter_file: str = PARAMETER_FILE
    no_cleanup: bool = option(
        False,
        "Keep users and workspaces for other tests; `cleanup` deletes them.",
        env="CODER_SCALETEST_NO_CLEANUP",
    )
    no_wait_for_agents: bool = option(
        False,
        "Finish a run when its build succeeds, without waiting for the agents.",
        env="CODER_SCALETEST_NO_WAIT_FOR_AGENTS",
    )
    use_host_login: bool = option(
        False,
        "Create all workspaces for yourself instead of a new user for each.",
        env="CODER_SCALETEST_USE_HOST_LOGIN",
    )
    max_failures: int = option(
        0,
        "Number of failed runs above which the command fails.",
        env="CODER_SCALETEST_MAX_FAILURES",
    )
    run_command: str = option(
        "",
        "Command to run in each workspace after its agent connects.",
        env="CODER_SCALETEST_RUN_COMMAND",
    )
    run_timeout: timedelta = option(
        timedelta(seconds=5),
        "Timeout for that command, like 5s; a timeout fails the run.",
        env="CODER_SCALETEST_RUN_TIMEOUT",
    )
    run_expect_output: str = option(
        "",
        "Text that the command's output must contain; otherwise the run fails.",
        env="CODER_SCALETEST_RUN_EXPECT_OUTPUT",
    )
    run_expect_timeout: bool = option(
        False,
        env="CODER_SCALETEST_RUN_EXPECT_TIMEOUT",
        hidden=True,
    )
    run_log_output: bool = option(
        False,
        env="CODER_SCALETEST_RUN_LOG_OUTPUT",
        hidden=True,
    )
    retry: int = option(
        0,
        env="CODER_SCALETEST_RETRY",
        hidden=True,
    )
    connect_url: str = option(
        "",
        env="CODER_SCALETEST_CONNECT_URL",
        hidden=True,
    )
    connect_mode: str = option(
        "derp",
        env="CODER_SCALETEST_CONNECT_MODE",
        choices=("derp", "direct"),
        hidden=True,
    )
    connect_hold: timedelta = option(
        timedelta(seconds=30),
        env="CODER_SCALETEST_CONNECT_HOLD",
        hidden=True,
    )
    connect_interval: timedelta = option(
        timedelta(seconds=1),
        env="CODER_SCALETEST_CONNECT_INTERVAL",
        hidden=True,
    )
    connect_timeout: timedelta = option(
        timedelta(seconds=5),
        env="CODER_SCALETEST_CONNECT_TIMEOUT",
        hidden=True,
    )


CREATE_WORKSPACES = Command(
    words="exp scaletest create-workspaces",
    summary="Create many workspaces and measure their build times",
    options=ScaletestCreateWorkspacesOptions,
    max_args=0,
    examples=(
        (
            "Create fifty workspaces, ten at a time",
            "coder exp scaletest create-workspaces --template docker --count 50 --concurrency 10",
        ),
        (
            "Keep the workspaces for the next test and write results to a file",
            "coder exp scaletest create-workspaces --template docker --count 50 --no-cleanup --output json:create.json",
        ),
    ),
)
