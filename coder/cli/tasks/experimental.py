"""`coder exp`: experimental commands: a web terminal in the local terminal, and example prompts and errors."""

from __future__ import annotations

import sys
from uuid import UUID, uuid4

from coder.base.errors import CoderError
from coder.base.quoted import quoted
from coder.base.threads import run_trio
from coder.cli.core import session
from coder.cli.core.command import Invocation, implements
from coder.cli.declarations.tasks.experimental import (
    MULTI_SELECT,
    MULTI_SELECT_BARE,
    RICH_MULTI_SELECT,
    RICH_PARAMETER,
    RPTY,
    SELECT,
    VALIDATION,
    ExampleErrorValidationOptions,
    RptyOptions,
    SearchOption,
    ThingsOptions,
)
from coder.cli.ui.choices import select, select_many
from coder.cli.ui.chooser import Choice
from coder.cli.ui.output import say
from coder.client.ready import Preparation, print_to_stderr
from coder.client.web_terminal import TerminalRequest, run_terminal
from coder.net.http1 import HttpClient


@implements(RPTY)
def _rpty(invocation: Invocation[RptyOptions]) -> int:
    run_trio(_attach, invocation)
    return 0


async def _attach(invocation: Invocation[RptyOptions]) -> None:
    reconnect_id = invocation.options.reconnect
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
        container=invocation.options.container,
        container_user=invocation.options.container_user,
    )
    await run_terminal(policy, request)


_COLOURS = tuple(Choice(word, word) for word in ("Blue", "Green", "Yellow", "Red"))


@implements(RICH_PARAMETER)
@implements(SELECT)
def _select(invocation: Invocation[SearchOption]) -> int:
    """Prompt for one item of a list."""
    chosen = select("Select your favorite color:", _COLOURS, default="Blue", searches=invocation.options.search)
    sys.stdout.write(f'"{chosen}" selected\n')
    return 0


@implements(MULTI_SELECT)
@implements(MULTI_SELECT_BARE)
@implements(RICH_MULTI_SELECT)
def _multi_select(invocation: Invocation[ThingsOptions]) -> int:
    things = invocation.options.things or (*(colour.value for colour in _COLOURS), "Something else")
    chosen = select_many(
        "Select some things:",
        [Choice(text, text) for text in things],
        free=invocation.options.enable_custom_input,
    )
    sys.stdout.write(f'"{", ".join(chosen)}" are nice choices.\n')
    return 0


@implements(VALIDATION)
def _validation(invocation: Invocation[ExampleErrorValidationOptions]) -> int:
    word = invocation.options.magic_word
    if word == "magic":
        return 0
    raise CoderError("validation", "magic word is incorrect", 'The word is "magic".')
