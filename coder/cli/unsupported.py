"""Settings of agents, provisioner daemons and proxies that ask for what these programs do not do, and the reasons.

A daemon or proxy (whose table is in `wsproxy/config.py`) that is given one as a flag does not start: whoever runs it
reads the sentence. Of its environment it is told in the log, because one file of variables often serves the server and
what stands around it. An agent says the sentence in its log and goes on, because its settings come from a template, and
people must still get into the workspace to mend that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from coder.base.errors import CoderError
from coder.base.log import get_logger
from coder.cli.command import Invocation

AGENT = {
    "pprof_address": "profiles are of another language's runtime; --debug-address and --prometheus-address show much",
    "firewall_log_socket": "no audit log of an agent's firewall is passed on; agents have no firewall",
}
DAEMON = {
    "poll_interval": "the server wakes provisioners, nobody polls",
    "poll_jitter": "the server wakes provisioners, nobody polls",
    "experiments": "experiments are the server's; start `coder server` with them",
}


def unsupported(invocation: Invocation, reasons: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """A sentence, a hint and the source for each such setting that somebody gave another value than its default."""
    for option in invocation.command.options:
        if option.name in reasons and invocation[option.name] != option.default:
            hint = f"Leave {option.env} unset." if option.env else "Leave it out."
            sentence = f"--{option.flag} is not supported: {reasons[option.name]}"
            yield sentence, hint, invocation.sources[option.name]


def judge_settings(invocation: Invocation, reasons: Mapping[str, str], logger: str) -> None:
    """Tells of those in the environment, once the log is open. Raises CoderError `bad_option` for the first flag."""
    for sentence, hint, source in unsupported(invocation, reasons):
        if source == "flag":
            raise CoderError("bad_option", sentence, hint)
        get_logger(logger).warn(sentence)


def warn_of_unsupported(invocation: Invocation) -> None:
    """For an agent, once its log is open."""
    for sentence, hint, _ in unsupported(invocation, AGENT):
        get_logger("agent").warn(f"{sentence}. {hint}")
