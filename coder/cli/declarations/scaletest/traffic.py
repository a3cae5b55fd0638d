"""Declaration of `coder exp scaletest workspace-traffic`."""

from __future__ import annotations

from datetime import timedelta

from coder.cli.core.command import Command
from coder.cli.core.options import option
from coder.cli.declarations.scaletest.runs import PrometheusOptions, RunOptions, UnusedCleanupOptions


class ScaletestWorkspaceTrafficOptions(RunOptions, UnusedCleanupOptions, PrometheusOptions):
    """Options of `coder exp scaletest workspace-traffic`."""

    bytes_per_tick: int = option(
        1024,
        "Number of bytes to send to a terminal per tick.",
        env="CODER_SCALETEST_WORKSPACE_TRAFFIC_BYTES_PER_TICK",
    )
    tick_interval: timedelta = option(
        timedelta(milliseconds=100),
        "Time between two ticks of a terminal, like 100ms.",
        env="CODER_SCALETEST_WORKSPACE_TRAFFIC_TICK_INTERVAL",
    )
    target_workspaces: str = option(
        "",
        "Range START:END of the test's workspaces, by creation time; defaults to all.",
        env="CODER_SCALETEST_TARGET_WORKSPACES",
    )
    template: str = option(
        "",
        "Send traffic only to workspaces of this template.",
        env="CODER_SCALETEST_TEMPLATE",
        short="t",
    )
    use_host_login: bool = option(
        False,
        "Send traffic only to your own workspaces, as create-workspaces creates them with this option.",
        env="CODER_SCALETEST_USE_HOST_LOGIN",
    )
    ssh: bool = option(
        False,
        env="CODER_SCALETEST_WORKSPACE_TRAFFIC_SSH",
        hidden=True,
    )
    app: str = option(
        "",
        env="CODER_SCALETEST_WORKSPACE_TRAFFIC_APP",
        hidden=True,
    )
    disable_direct: bool = option(
        False,
        env="CODER_SCALETEST_WORKSPACE_TRAFFIC_DISABLE_DIRECT_CONNECTIONS",
        hidden=True,
    )
    proxy_url: str = option(
        "",
        flag="workspace-proxy-url",
        env="CODER_SCALETEST_WORKSPACE_PROXY_URL",
        hidden=True,
    )


WORKSPACE_TRAFFIC = Command(
    words="exp scaletest workspace-traffic",
    summary="Send traffic to workspace terminals and measure the latency",
    options=ScaletestWorkspaceTrafficOptions,
    max_args=0,
    examples=(
        (
            "Send traffic to the first ten workspaces of the test",
            "coder exp scaletest workspace-traffic --target-workspaces 0:10 --concurrency 10",
        ),
    ),
)
