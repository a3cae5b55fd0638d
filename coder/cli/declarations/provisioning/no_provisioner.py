"""Option of the commands whose jobs may lack a provisioner."""

from __future__ import annotations

from coder.cli.core.options import Options, option


class JobOptions(Options):
    """Handling of a job without a provisioner, also of commands without the flag."""

    wait_for_provisioner: bool = False


class WaitOption(JobOptions):
    """The option `--wait-for-provisioner`."""

    wait_for_provisioner: bool = option(
        False,
        "Wait without limit for a matching provisioner instead of failing.",
        env="CODER_WAIT_FOR_PROVISIONER",
    )
