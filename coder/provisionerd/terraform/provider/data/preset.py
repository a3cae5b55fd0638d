"""coder_workspace_preset: a named set of parameter values, with prebuilt workspaces for it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from coder.domain.foundation.cron import zone_exists
from coder.domain.foundation.go_url import go_quote
from coder.provisionerd.terraform.provider.checks import at_least, every, is_url, length_between, not_empty
from coder.provisionerd.terraform.provider.cron import overlap, prebuild_cron_problem
from coder.provisionerd.terraform.provider.diagnostics import Diagnostic, error
from coder.provisionerd.terraform.provider.kinds import Body, DataKind, ProviderContext
from coder.provisionerd.terraform.provider.readers import checked_blocks, checked_number, checked_text
from coder.provisionerd.terraform.provider.schema import BOOL, NUMBER, STRING, STRING_MAP, Attribute, Block, Schema
from coder.provisionerd.terraform.provider.values import Value

_HOUR, _YEAR = 3600, 31536000


def _check_ttl(value: Value, key: str) -> Iterator[str]:
    if value != 0 and not _HOUR <= checked_number(value) <= _YEAR:
        yield f'"{key}" must be 0 or between {_HOUR} and {_YEAR}, got {value}'


def _check_timezone(value: Value, _key: str) -> Iterator[str]:
    zone = checked_text(value)
    if not zone_exists(zone):
        yield f"failed to load timezone {go_quote(zone)}: unknown time zone {zone}"


def _check_cron(value: Value, _key: str) -> Iterator[str]:
    problem = prebuild_cron_problem(checked_text(value))
    if problem:
        yield problem


_INSTANCES = Attribute(NUMBER, "required", check=at_least(0), description="Number of prebuilt workspaces.")

_SCHEDULING = Block(
    "list",
    {
        "timezone": Attribute(STRING, "required", check=_check_timezone, description="Name in the IANA database."),
        "schedule": Block(
            "list",
            {
                "cron": Attribute(
                    STRING, "required", check=_check_cron, description="Cron schedule; the minute is always *."
                ),
                "instances": Attribute(
                    NUMBER, "required", description="Number of prebuilt workspaces during that time."
                ),
            },
            min_items=1,
        ),
    },
    max_items=1,
    description="Numbers of prebuilt workspaces by schedule.",
)

_SCHEMA = Schema(
    {
        "id": Attribute(STRING, "computed"),
        "name": Attribute(STRING, "required", check=not_empty, description="Name that users choose."),
        "description": Attribute(STRING, check=length_between(0, 128), description="One-line description."),
        "icon": Attribute(STRING, check=every((is_url, length_between(0, 256))), description="URL of an image."),
        "default": Attribute(BOOL, default=False, description="Chosen beforehand; one preset at most."),
        "parameters": Attribute(STRING_MAP, description="Values by parameter name."),
        "prebuilds": Block(
            "set",
            {
                "instances": _INSTANCES,
                "expiration_policy": Block(
                    "set",
                    {
                        "ttl": Attribute(
                            NUMBER,
                            "required",
                            check=_check_ttl,
                            description="Seconds until an unclaimed workspace expires.",
                        )
                    },
                    max_items=1,
                ),
                "scheduling": _SCHEDULING,
            },
            max_items=1,
            description="Workspaces built in advance, for users to claim.",
        ),
    },
    description="Parameter values under one name.",
)


def _read(_context: ProviderContext, _config: Body, state: Body) -> Iterator[Diagnostic]:
    state["id"] = state["name"]
    for prebuilds in checked_blocks(state["prebuilds"]):
        for scheduling in checked_blocks(prebuilds["scheduling"]):
            lines = [checked_text(schedule["cron"]) for schedule in checked_blocks(scheduling["schedule"])]
            for left, right in combinations(lines, 2):
                if overlap(left, right):
                    yield error(f"schedules overlap with each other: schedules overlap: {left} and {right}")
                    return


workspace_preset = DataKind(_SCHEMA, _read)
