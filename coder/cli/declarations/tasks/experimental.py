"""Declarations of the commands of `coder exp`."""

from __future__ import annotations

from coder.cli.core.command import Command
from coder.cli.core.options import Options, option


class ThingsOptions(Options):
    """Items of an example list."""

    things: tuple[str, ...] = option(
        (),
        "Words to choose from, separated by commas.",
    )
    enable_custom_input: bool = option(
        False,
        "Also accept answers that are not in the list.",
    )


class SearchOption(Options):
    """The option `--search`."""

    search: bool = option(
        False,
        "Filter the list of answers by typed text.",
    )


class ExampleErrorValidationOptions(Options):
    """Options of `coder exp example-error validation`."""

    magic_word: str = option(
        "",
        'Word to validate; only "magic" is accepted.',
    )


class RptyOptions(Options):
    """Options of `coder exp rpty`."""

    container: str = option(
        "",
        "Name or id of the workspace container to open the terminal in.",
        short="c",
    )
    container_user: str = option(
        "",
        "User in the container; defaults to the container's user.",
        short="u",
    )
    reconnect: str = option(
        "",
        "Id of the terminal to reattach to, in the state it was left.",
        short="r",
    )


VALIDATION = Command(
    words="exp example-error validation",
    summary="Show an example of a validation error",
    options=ExampleErrorValidationOptions,
    max_args=0,
    examples=(("Show a validation error", "coder exp example-error validation --magic-word wrong"),),
)

MULTI_SELECT = Command(
    words="exp prompt-example multi-select",
    summary="Prompt for several items of a list",
    options=ThingsOptions,
    max_args=0,
    examples=(("Select several items", "coder exp prompt-example multi-select --things=a,b"),),
)

MULTI_SELECT_BARE = Command(
    words="exp prompt-example multi-select-no-defaults",
    summary="Prompt for several items of a list, none preselected",
    options=ThingsOptions,
    max_args=0,
    examples=(("Select several items, with none preselected", "coder exp prompt-example multi-select-no-defaults"),),
)

RICH_MULTI_SELECT = Command(
    words="exp prompt-example rich-multi-select",
    summary="Prompt for a parameter with several values",
    options=ThingsOptions,
    max_args=0,
    examples=(("Set a parameter with several values", "coder exp prompt-example rich-multi-select"),),
)

RICH_PARAMETER = Command(
    words="exp prompt-example rich-parameter",
    summary="Prompt for a parameter",
    options=SearchOption,
    max_args=0,
    examples=(("Set a parameter", "coder exp prompt-example rich-parameter"),),
)

SELECT = Command(
    words="exp prompt-example select",
    summary="Prompt for one item of a list",
    options=SearchOption,
    max_args=0,
    examples=(("Select an item", "coder exp prompt-example select"),),
)

RPTY = Command(
    words="exp rpty",
    summary="Attach to a workspace terminal that survives disconnects",
    options=RptyOptions,
    usage="<workspace> [command]",
    min_args=1,
    raw_after=1,
    examples=(
        ("Open a terminal that survives a disconnect", "coder exp rpty my-workspace"),
        ("Reattach to a terminal", "coder exp rpty my-workspace --reconnect 6f2d9a5e-5b0a-4c3e-9f3a-0d7b8d7c1a11"),
    ),
)
