"""Declarations of the commands of `coder templates`."""

from __future__ import annotations

from coder.cli.core.command import Command
from coder.cli.core.options import OrgOption, TableOptions, YesOption, column_option, output_option

LIST_COLUMNS = (
    "name",
    "created at",
    "last updated",
    "organization id",
    "organization name",
    "provisioner",
    "active version id",
    "used by",
    "default ttl",
)


class TemplatesDeleteOptions(OrgOption, YesOption):
    """Options of `coder templates delete`."""


class TemplatesListOptions(TableOptions, OrgOption):
    """Options of `coder templates list`."""

    column: tuple[str, ...] = column_option(LIST_COLUMNS, ("name", "organization name", "last updated", "used by"))
    output: str = output_option()


DELETE = Command(
    words="templates delete",
    summary="Delete templates",
    options=TemplatesDeleteOptions,
    usage="[name...]",
    examples=(("Delete a template that no workspace uses", "coder templates delete old-template"),),
)

LIST = Command(
    words="templates list",
    summary="List all the templates available for the organization",
    options=TemplatesListOptions,
    max_args=0,
    examples=(
        ("List the templates you can use", "coder templates list"),
        ("Print only names, for a script", "coder templates list --column name"),
    ),
)
