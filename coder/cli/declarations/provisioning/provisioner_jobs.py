"""Declarations of the commands of `coder provisioner jobs`."""

from __future__ import annotations

from coder.cli.core.command import Command
from coder.cli.core.options import OrgOption, TableOptions, column_option, option, output_option

COLUMNS = (
    "id",
    "created at",
    "started at",
    "completed at",
    "canceled at",
    "error",
    "error code",
    "status",
    "worker id",
    "worker name",
    "file id",
    "tags",
    "queue position",
    "queue size",
    "organization id",
    "initiator id",
    "template version id",
    "workspace build id",
    "type",
    "available workers",
    "template version name",
    "template id",
    "template name",
    "template display name",
    "template icon",
    "workspace id",
    "workspace name",
    "workspace build transition",
    "logs overflowed",
    "organization",
    "queue",
)
DEFAULT_COLUMNS = ("created at", "id", "type", "template display name", "status", "queue", "tags")
STATUSES = ("pending", "running", "succeeded", "canceling", "canceled", "failed", "unknown")


class ProvisionerJobsListOptions(TableOptions, OrgOption):
    """Options of `coder provisioner jobs list`."""

    status: tuple[str, ...] = option(
        (),
        "List only jobs in one of these states, separated by commas.",
        env="CODER_PROVISIONER_JOB_LIST_STATUS",
        short="s",
        choices=STATUSES,
    )
    limit: int = option(
        50,
        "Maximum number of rows to list; further rows are omitted.",
        env="CODER_PROVISIONER_JOB_LIST_LIMIT",
        short="l",
    )
    initiator: str = option(
        "",
        'List only jobs that this user initiated: a name, an id or "me".',
        env="CODER_PROVISIONER_JOB_LIST_INITIATOR",
        short="i",
    )
    column: tuple[str, ...] = column_option(COLUMNS, DEFAULT_COLUMNS)
    output: str = output_option()


class ProvisionerJobsWhyOptions(OrgOption):
    """Options of `coder provisioner jobs why`."""

    output: str = output_option(("text", "json"), "text")


CANCEL = Command(
    words="provisioner jobs cancel",
    summary="Cancel a provisioner job",
    options=OrgOption,
    usage="<job_id>",
    min_args=1,
    max_args=1,
    examples=(
        ("Cancel a pending or running job", "coder provisioner jobs cancel 6f2d9a5e-5b0a-4c3e-9f3a-0d7b8d7c1a11"),
    ),
)

LIST = Command(
    words="provisioner jobs list",
    summary="List provisioner jobs",
    options=ProvisionerJobsListOptions,
    max_args=0,
    examples=(
        ("List the latest jobs", "coder provisioner jobs list"),
        ("List pending and running jobs", "coder provisioner jobs list --status pending,running"),
        ("List your failed jobs", "coder provisioner jobs list --initiator me --status failed"),
    ),
)

WHY = Command(
    words="provisioner jobs why",
    summary="Explain why a job is pending, per provisioner, and when it should start",
    options=ProvisionerJobsWhyOptions,
    usage="<job_id>",
    min_args=1,
    max_args=1,
    examples=(
        (
            "Explain which provisioners a job waits for",
            "coder provisioner jobs why 6f2d9a5e-5b0a-4c3e-9f3a-0d7b8d7c1a11",
        ),
    ),
)
