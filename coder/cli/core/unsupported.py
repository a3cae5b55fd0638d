"""Unsupported settings of agents, provisioner daemons and proxies, with the reasons.

A daemon or proxy (whose table is in `wsproxy/config.py`) with such a flag does not start, so its operator reads the
sentence. For an environment variable it logs the sentence, because the server and its daemons often share one
environment file. An agent logs the sentence and continues, because its settings come from a template, and users must be
able to connect to the workspace to fix it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from coder.base.errors import CoderError
from coder.base.log import get_logger
from coder.cli.core.command import Invocation
from coder.cli.core.options import Options

AGENT = {
    "pprof_address": "profiles belong to another language's runtime; use --debug-address and --prometheus-address",
    "firewall_log_socket": "agents have no firewall, so there is no firewall audit log",
}
DAEMON = {
    "poll_interval": "the server notifies provisioners, which do not poll",
    "poll_jitter": "the server notifies provisioners, which do not poll",
    "experiments": "experiments belong to the server; set them for `coder server`",
}


def unsupported(invocation: Invocation[Options], reasons: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Return a sentence, a hint and the source for each unsupported setting whose value is not its default."""
    values = vars(invocation.options)
    for option in invocation.command.options:
        if option.name in reasons and values[option.name] != option.default:
            hint = f"Unset {option.env}." if option.env else "Remove the flag."
            sentence = f"--{option.flag} is not supported: {reasons[option.name]}"
            yield sentence, hint, invocation.sources[option.name]


def check_settings(invocation: Invocation[Options], reasons: Mapping[str, str], logger: str) -> None:
    """Log unsupported environment settings, after the log is open. Raise CoderError `bad_option` for the first flag."""
    for sentence, hint, source in unsupported(invocation, reasons):
        if source == "flag":
            raise CoderError("bad_option", sentence, hint)
        get_logger(logger).warn(sentence)


def warn_of_unsupported(invocation: Invocation[Options]) -> None:
    """Log the unsupported settings of an agent, after its log is open."""
    for sentence, hint, _ in unsupported(invocation, AGENT):
        get_logger("agent").warn(f"{sentence}. {hint}")
