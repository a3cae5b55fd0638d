"""Declarations of the commands of `coder provisioner keys`."""

from __future__ import annotations

from coder.cli.core.command import Command
from coder.cli.core.options import OrgOption, TableOptions, YesOption, column_option, option, output_option

COLUMNS = ("created at", "name", "tags")


class ProvisionerKeysCreateOptions(OrgOption):
    """Options of `coder provisioner keys create`."""

    tag: tuple[str, ...] = option(
        (),
        "Tag, key=value, of every provisioner with this key; may be repeated.",
        env="CODER_PROVISIONERD_TAGS",
        short="t",
    )


class ProvisionerKeysDeleteOptions(YesOption, OrgOption):
    """Options of `coder provisioner keys delete`."""


class ProvisionerKeysListOptions(TableOptions, OrgOption):
    """Options of `coder provisioner keys list`."""

    column: tuple[str, ...] = column_option(COLUMNS, COLUMNS)
    output: str = output_option()


CREATE = Command(
    words="provisioner keys create",
    summary="Create a new provisioner key",
    options=ProvisionerKeysCreateOptions,
    usage="<name>",
    min_args=1,
    max_args=1,
    examples=(
        ("Create a key for provisioners of one environment", "coder provisioner keys create gpu --tag environment=gpu"),
        ("Create a key without tags", "coder provisioner keys create office"),
    ),
)

DELETE = Command(
    words="provisioner keys delete",
    summary="Delete a provisioner key",
    options=ProvisionerKeysDeleteOptions,
    usage="<name>",
    min_args=1,
    max_args=1,
    examples=(("Delete a provisioner key", "coder provisioner keys delete gpu"),),
)

LIST = Command(
    words="provisioner keys list",
    summary="List provisioner keys in an organization",
    options=ProvisionerKeysListOptions,
    max_args=0,
    examples=(("List the keys and their tags", "coder provisioner keys list"),),
)
