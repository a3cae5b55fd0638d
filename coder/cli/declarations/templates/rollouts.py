"""Declarations of `coder templates rollout …` (ours)."""

from __future__ import annotations

from coder.cli.core.command import Command
from coder.cli.core.options import Options, OrgOption, TableOptions, YesOption, column_option, option, output_option

COLUMNS = (
    "version",
    "status",
    "stage",
    "stages",
    "group",
    "workspaces",
    "offered",
    "updated",
    "succeeded",
    "failed",
    "unfinished",
    "failure rate",
    "started at",
    "started by",
    "message",
)
_SHOWN = (
    "version",
    "status",
    "stage",
    "workspaces",
    "offered",
    "updated",
    "succeeded",
    "failed",
    "unfinished",
    "message",
)


class RolloutStatusOptions(TableOptions, OrgOption):
    """Options of `coder templates rollout status`."""

    column: tuple[str, ...] = column_option(COLUMNS, _SHOWN)
    output: str = output_option()


class RolloutStepOptions(OrgOption, Options):
    """Options of a step of a rollout."""

    output: str = output_option(("text", "json"), "text")


class RolloutStartOptions(RolloutStepOptions):
    """Options of `coder templates rollout start`."""

    template_version: str = option(
        "",
        "Name of the version to roll out.",
        env="CODER_TEMPLATE_VERSION_NAME",
    )
    stages: tuple[str, ...] = option(
        (),
        "Stages in percent of the template's workspaces, separated by commas; the last one is 100. "
        "Defaults to 5,25,100, or to 0,100 with a group.",
    )
    group: str = option(
        "",
        "Name of a group whose members' workspaces get the version from the first stage on.",
    )
    failure_percent: int = option(
        20,
        "Stop the rollout when more than this percentage of its builds fail.",
    )
    minimum_builds: int = option(
        5,
        "Number of finished builds in a stage before the failure limit applies.",
    )


class RolloutNextOptions(RolloutStepOptions, YesOption):
    """Options of `coder templates rollout next`."""


START = Command(
    words="templates rollout start",
    summary="Offer a version to some of a template's workspaces first",
    options=RolloutStartOptions,
    usage="<template>",
    min_args=1,
    max_args=1,
    examples=(
        ("Begin with 5 percent of the workspaces", "coder templates rollout start docker --template-version v2"),
        (
            "Begin with a group, and then with half of the others",
            "coder templates rollout start docker --template-version v2 --group testers --stages 0,50,100",
        ),
    ),
)

STATUS = Command(
    words="templates rollout status",
    summary="Show the rollouts of a template, the latest first",
    options=RolloutStatusOptions,
    usage="<template>",
    min_args=1,
    max_args=1,
    examples=(
        ("Show the progress of a rollout", "coder templates rollout status docker"),
        ("Print rollouts as JSON", "coder templates rollout status docker --output json"),
    ),
)

NEXT = Command(
    words="templates rollout next",
    summary="Go on to the next stage of a rollout. The last stage makes the version active for all workspaces.",
    options=RolloutNextOptions,
    usage="<template>",
    min_args=1,
    max_args=1,
    examples=(("Go on without a question", "coder templates rollout next docker --yes"),),
)

STOP = Command(
    words="templates rollout stop",
    summary="Stop a rollout at its stage. No further workspaces are offered the version.",
    options=RolloutStepOptions,
    usage="<template>",
    min_args=1,
    max_args=1,
    examples=(("Stop a rollout", "coder templates rollout stop docker"),),
)

RESUME = Command(
    words="templates rollout resume",
    summary="Resume the stage of a stopped rollout. Its builds are counted from now on.",
    options=RolloutStepOptions,
    usage="<template>",
    min_args=1,
    max_args=1,
    examples=(("Resume a stopped rollout", "coder templates rollout resume docker"),),
)

ROLLBACK = Command(
    words="templates rollout rollback",
    summary="End a rollout and return to the active version. Updates bring back workspaces that have the new one.",
    options=RolloutStepOptions,
    usage="<template>",
    min_args=1,
    max_args=1,
    examples=(("Roll back a rollout", "coder templates rollout rollback docker"),),
)
