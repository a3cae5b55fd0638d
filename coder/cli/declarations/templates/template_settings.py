"""Declarations of the commands of `coder templates`."""

from __future__ import annotations

from datetime import timedelta

from coder.cli.core.command import Command
from coder.cli.core.options import NEW_NAME, OrgOption, YesOption, option
from coder.cli.declarations.templates.push import DELETION, DORMANCY, FAILURE_TTL, REQUIRE_ACTIVE_VERSION


class TemplatesArchiveOptions(OrgOption, YesOption):
    """Options of `coder templates archive`."""

    all: bool = option(
        False,
        "Archive every version that no workspace uses, not only those that failed.",
    )


class TemplatesEditOptions(OrgOption, YesOption):
    """Options of `coder templates edit`."""

    name: str = NEW_NAME
    display_name: str = option(
        "",
        "New display name; the name for commands does not change.",
    )
    description: str = option(
        "",
        "New description, shown in the list of templates.",
    )
    deprecated: str = option(
        "",
        "Deprecate the template with this message, which blocks new workspaces; empty reverts it.",
    )
    icon: str = option(
        "",
        "Path or URL of the new icon, like /icon/docker.png.",
    )
    default_ttl: timedelta = option(
        timedelta(),
        "Stop new workspaces this long after each start, like 24h; 0 disables it.",
    )
    activity_bump: timedelta = option(
        timedelta(),
        "Extend the stop time by this long on workspace activity, like 1h; 0 disables it.",
    )
    autostop_reminder: timedelta = option(
        timedelta(),
        "Notify owners this long before their workspace stops, like 30m; 0 disables it.",
    )
    start_days: tuple[str, ...] = option(
        (),
        'Days on which autostart is allowed, separated by commas, or "all".',
        flag="autostart-requirement-weekdays",
        choices=("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday", "all"),
    )
    stop_days: tuple[str, ...] = option(
        (),
        'Days on which running workspaces must stop to get updates, or "none".',
        flag="autostop-requirement-weekdays",
        choices=("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday", "none"),
    )
    stop_weeks: int = option(
        0,
        "Number of weeks between two required stops; 1 is every week.",
        flag="autostop-requirement-weeks",
    )
    failure_ttl: timedelta = FAILURE_TTL
    dormancy: timedelta = DORMANCY
    deletion: timedelta = DELETION
    cancel: bool = option(
        True,
        "Allow users to cancel running builds of their workspaces.",
        flag="allow-user-cancel-workspace-jobs",
    )
    autostart: bool = option(
        True,
        "Allow users to set an autostart schedule for their workspaces.",
        flag="allow-user-autostart",
    )
    autostop: bool = option(
        True,
        "Allow users to set an autostop time for their workspaces.",
        flag="allow-user-autostop",
    )
    require_active_version: bool = REQUIRE_ACTIVE_VERSION
    private: bool = option(
        False,
        "Remove access of all users without an explicit grant to them or their group.",
    )


class TemplatesPullOptions(OrgOption, YesOption):
    """Options of `coder templates pull`."""

    tar: bool = option(
        False,
        "Write the files to standard output as a tar archive instead of a directory.",
    )
    zip: bool = option(
        False,
        "Write the files to standard output as a zip archive instead of a directory.",
    )
    version: str = option(
        "",
        'Version to download: a name, "active" (the default) or "latest".',
    )


ARCHIVE = Command(
    words="templates archive",
    summary="Archive unused or failed template versions from a given template(s)",
    options=TemplatesArchiveOptions,
    usage="[template-name...]",
    examples=(
        ("Archive the versions that failed to import", "coder templates archive docker"),
        ("Archive unused versions as well", "coder templates archive docker --all -y"),
    ),
)

EDIT = Command(
    words="templates edit",
    summary="Edit the metadata of a template by name.",
    options=TemplatesEditOptions,
    usage="<template>",
    min_args=1,
    max_args=1,
    examples=(
        ("Stop workspaces 24 hours after each start", "coder templates edit docker --default-ttl 24h"),
        (
            "Change display name and icon",
            'coder templates edit docker --display-name "Docker containers" --icon /icon/docker.png',
        ),
        ("Deprecate a template", 'coder templates edit docker --deprecated "Use kubernetes instead."'),
    ),
)

PULL = Command(
    words="templates pull",
    summary="Download the active, latest, or specified version of a template to a path.",
    options=TemplatesPullOptions,
    usage="<name> [destination]",
    min_args=1,
    max_args=2,
    examples=(
        ("Download the files of a template", "coder templates pull docker ./docker"),
        ("Write one version as a tar archive to standard output", "coder templates pull docker --version v1 --tar"),
    ),
)
