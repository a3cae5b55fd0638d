"""`coder exp`: experimental commands: a web terminal in the local terminal, and example prompts and errors."""

from __future__ import annotations

import sys

from coder.base.config import Option
from coder.base.errors import CoderError
from coder.base.quoted import quoted
from coder.cli.core import session
from coder.cli.core.command import Command, Invocation
from coder.cli.ui.choices import Choice, select, select_many
from coder.cli.ui.output import say


def _rpty(invocation: Invocation) -> int:
    from coder.base.threads import run_trio

    run_trio(_attach, invocation)
    return 0


async def _attach(invocation: Invocation) -> None:
    from uuid import UUID, uuid4

    from coder.client.ready import Preparation, print_to_stderr
    from coder.client.web_terminal import TerminalRequest, run_terminal
    from coder.net.http1 import HttpClient

    reconnect_id = invocation["reconnect"]
    try:
        reconnect = UUID(reconnect_id) if reconnect_id else uuid4()
    except ValueError as error:
        raise CoderError("reconnect", f"invalid reconnect ID: {quoted(reconnect_id)} is not a UUID") from error
    policy = session.dial_policy(invocation)
    async with HttpClient(policy) as http:
        target = await Preparation(http, print_to_stderr).find(invocation.args[0])
    if not reconnect_id:
        say(f"Connected. Reattach to this terminal with --reconnect {reconnect}")
    request = TerminalRequest(
        agent_id=target.agent.id,
        reconnect=reconnect,
        command=" ".join(invocation.args[1:]),
        container=invocation["container"],
        container_user=invocation["container_user"],
    )
    await run_terminal(policy, request)


_COLOURS = tuple(Choice(word, word) for word in ("Blue", "Green", "Yellow", "Red"))


def _select(invocation: Invocation) -> int:
    """Prompt for one item of a list."""
    chosen = select("Select your favorite color:", _COLOURS, default="Blue", searches=invocation["search"])
    sys.stdout.write(f'"{chosen}" selected\n')
    return 0


def _multi_select(invocation: Invocation) -> int:
    things = invocation["things"] or (*(colour.value for colour in _COLOURS), "Something else")
    chosen = select_many(
        "Select some things:",
        [Choice(text, text) for text in things],
        free=invocation["enable_custom_input"],
    )
    sys.stdout.write(f'"{", ".join(chosen)}" are nice choices.\n')
    return 0


def _validation(invocation: Invocation) -> int:
    word = invocation["magic_word"]
    if word == "magic":
        return 0
    raise CoderError("validation", "magic word is incorrect", 'The word is "magic".')


_SEARCH = Option("search", "search", kind="bool", default=False, help="Filter the list of answers by typed text.")
_THINGS = (
    Option("things", "things", kind="string-array", default=(), help="Words to choose from, separated by commas."),
    Option(
        "enable_custom_input",
        "enable-custom-input",
        kind="bool",
        default=False,
        help="Also accept answers that are not in the list.",
    ),
)

RPTY = Command(
    words="exp rpty",
    summary="Attach to a workspace terminal that survives disconnects",
    usage="<workspace> [command]",
    run=_rpty,
    min_args=1,
    raw_after=1,
    options=(
        Option(
            "container",
            "container",
            short="c",
            help="Name or id of the workspace container to open the terminal in.",
        ),
        Option(
            "container_user",
            "container-user",
            short="u",
            help="User in the container; defaults to the container's user.",
        ),
        Option(
            "reconnect",
            "reconnect",
            short="r",
            help="Id of the terminal to reattach to, in the state it was left.",
        ),
    ),
)
SELECT = Command(
    words="exp prompt-example select",
    summary="Prompt for one item of a list",
    run=_select,
    max_args=0,
    options=(_SEARCH,),
)
RICH_PARAMETER = Command(
    words="exp prompt-example rich-parameter",
    summary="Prompt for a parameter",
    run=_select,
    max_args=0,
    options=(_SEARCH,),
)
MULTI_SELECT = Command(
    words="exp prompt-example multi-select",
    summary="Prompt for several items of a list",
    run=_multi_select,
    max_args=0,
    options=_THINGS,
)
MULTI_SELECT_BARE = Command(
    words="exp prompt-example multi-select-no-defaults",
    summary="Prompt for several items of a list, none preselected",
    run=_multi_select,
    max_args=0,
    options=_THINGS,
)
RICH_MULTI_SELECT = Command(
    words="exp prompt-example rich-multi-select",
    summary="Prompt for a parameter with several values",
    run=_multi_select,
    max_args=0,
    options=_THINGS,
)
VALIDATION = Command(
    words="exp example-error validation",
    summary="Show an example of a validation error",
    run=_validation,
    max_args=0,
    options=(Option("magic_word", "magic-word", help='Word to validate; only "magic" is accepted.'),),
)
