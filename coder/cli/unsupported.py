"""Settings of the agent and of provisioner daemons that ask for what these programs do not do, each with the reason.

A daemon that is given one does not start: whoever runs it reads the sentence. An agent says the sentence in its log and
goes on, because its settings come from a template, and people must still get into the workspace to mend that.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping

from coder.base.errors import CoderError
from coder.cli.command import Invocation

AGENT = {
    "pprof_address": "profiles are of another language's runtime; --debug-address and --prometheus-address show much",
    "log_stackdriver": "logs are written by --log-human and --log-json",
}
DAEMON = {
    "poll_interval": "the server wakes provisioners, nobody polls",
    "poll_jitter": "the server wakes provisioners, nobody polls",
    "experiments": "experiments are the server's; start `coder server` with them",
    "log_stackdriver": "logs are written by --log-human and --log-json",
    "log_filter": "give --verbose for all debug messages",
}


def unsupported(invocation: Invocation, reasons: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """A sentence and a hint for each such setting that somebody gave another value than its default."""
    for option in invocation.command.options:
        if option.name in reasons and invocation[option.name] != option.default:
            hint = f"Leave {option.env} unset." if option.env else "Leave it out."
            yield f"--{option.flag} is not supported: {reasons[option.name]}", hint


def refuse_unsupported(invocation: Invocation) -> None:
    """For a daemon. Raises CoderError `bad_option` for the first."""
    for sentence, hint in unsupported(invocation, DAEMON):
        raise CoderError("bad_option", sentence, hint)


def warn_of_unsupported(invocation: Invocation) -> None:
    """For an agent, once its log is open."""
    for sentence, hint in unsupported(invocation, AGENT):
        logging.getLogger(__name__).warning("%s. %s", sentence, hint)
