"""Declarations of the commands of `coder templates`."""

from __future__ import annotations

from coder.cli.core.command import Command
from coder.cli.core.options import Options, OrgOption, TableOptions, column_option, option, output_option
from coder.cli.declarations.templates.templates import TemplatesDeleteOptions

COLUMNS = ("id", "name", "created at", "created by", "status", "active", "archived")
PRESET_COLUMNS = ("name", "description", "parameters", "default", "desired prebuild instances")
TEMPLATE: str = option(
    "",
    "Name of the template that the version belongs to.",
    env="CODER_TEMPLATE_NAME",
    short="t",
)


class TemplateOption(Options):
    """The option `--template`."""

    template: str = TEMPLATE


class TemplatesPresetsListOptions(TableOptions, OrgOption):
    """Options of `coder templates presets list`."""

    template_version: str = option(
        "",
        "Name of the version whose presets to list; defaults to the active version.",
    )
    column: tuple[str, ...] = column_option(PRESET_COLUMNS, PRESET_COLUMNS)
    output: str = output_option()


class TemplatesVersionsListOptions(TableOptions, OrgOption):
    """Options of `coder templates versions list`."""

    column: tuple[str, ...] = column_option(COLUMNS, ("name", "created at", "created by", "status", "active"))
    include_archived: bool = option(
        False,
        "Also list versions that are archived.",
    )
    output: str = output_option()


class TemplatesVersionsPromoteOptions(OrgOption, TemplateOption):
    """Options of `coder templates versions promote`."""

    template: str = TEMPLATE
    template_version: str = option(
        "",
        "Name of the version to make active for new and updated workspaces.",
        env="CODER_TEMPLATE_VERSION_NAME",
    )


PRESETS = Command(
    words="templates presets list",
    summary="List all presets of the specified template. Defaults to the active template version.",
    options=TemplatesPresetsListOptions,
    usage="<template>",
    min_args=1,
    max_args=1,
    examples=(
        ("List the presets of the active version", "coder templates presets list docker"),
        ("List the presets of an earlier version", "coder templates presets list docker --template-version v1"),
    ),
)

ARCHIVE = Command(
    words="templates versions archive",
    summary="Archive a template version(s).",
    options=TemplatesDeleteOptions,
    usage="<template-name> [template-version-names...]",
    min_args=1,
    examples=(("Archive two versions", "coder templates versions archive docker v1 v2"),),
)

LIST = Command(
    words="templates versions list",
    summary="List all the versions of the specified template",
    options=TemplatesVersionsListOptions,
    usage="<template>",
    min_args=1,
    max_args=1,
    examples=(
        ("List the versions of a template", "coder templates versions list docker"),
        ("Include archived versions, as JSON", "coder templates versions list docker --include-archived -o json"),
    ),
)

PROMOTE = Command(
    words="templates versions promote",
    summary="Promote a template version to active.",
    options=TemplatesVersionsPromoteOptions,
    max_args=0,
    examples=(
        ("Make a version the active one", "coder templates versions promote --template docker --template-version v2"),
    ),
)

UNARCHIVE = Command(
    words="templates versions unarchive",
    summary="Unarchive a template version(s).",
    options=TemplatesDeleteOptions,
    usage="<template-name> [template-version-names...]",
    min_args=1,
    examples=(("Unarchive a version", "coder templates versions unarchive docker v1"),),
)
