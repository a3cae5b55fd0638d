"""Preloading of the modules that commands import when they run. Starts no thread and no event loop."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec

from coder.cli.command_server.served import NEVER_SERVED

LATE = (
    "coder.api.access.keys",
    "coder.api.base.answers",
    "coder.api.people.organizations",
    "coder.api.people.passwords",
    "coder.api.people.users",
    "coder.api.provisioning.job_reasons",
    "coder.api.provisioning.jobs",
    "coder.api.provisioning.provisioner_keys",
    "coder.api.provisioning.provisioners",
    "coder.api.site.deployment",
    "coder.api.templates.template_versions",
    "coder.api.workspaces.workspaces",
    "coder.base.duration",
    "coder.base.text_faults",
    "coder.cli.ui.choice_screen",
    "coder.cli.ui.error_output",
    "coder.cli.ui.help_text",
    "coder.cli.ui.job_logs",
    "coder.client.gpg",
    "coder.client.link",
    "coder.client.logs",
    "coder.client.network_info",
    "coder.client.overlay_process",
    "coder.client.raw",
    "coder.client.ready",
    "coder.client.shell",
    "coder.tailnet.speedtest",
    "coder.client.tracing",
    "coder.client.udp_forward",
    "coder.client.usage",
    "coder.client.web_terminal",
    "coder.net.blocking",
    "coder.net.http1",
    "coder.net.carried_stream",
    "coder.net.websocket",
    "coder.tailnet.verdicts",
    "csv",
    "getpass",
    "http.client",
    "json",
    "msgspec",
    "secrets",
    "ssl",
    "subprocess",
    "tarfile",
    "tempfile",
    "textwrap",
    "traceback",
    "unicodedata",
    "uuid",
    "zoneinfo",
)
"""Modules that commands import inside functions."""
NOT_PRELOADED = frozenset({"bundle", "reset-password"})
"""Commands that import parts of the server, and run rarely."""
OPTIONAL_MODULES = ("prompt_toolkit", "rich.console", "rich.table", "rich.progress")


def load_everything(modules_of_commands: Mapping[str, str]) -> None:
    """Import every module that commands use.

    A module that fails to import (the slim edition lacks some) raises again in the command that requires it.
    """
    left_out = NEVER_SERVED | NOT_PRELOADED
    served = [location for name, location in modules_of_commands.items() if name.split(" ")[0] not in left_out]
    served += LATE
    served += [
        loaded_module for loaded_module in OPTIONAL_MODULES if find_spec(loaded_module.partition(".")[0]) is not None
    ]
    for loaded_module in dict.fromkeys(served):
        with suppress(ImportError):
            import_module(loaded_module)
    _analyse_shapes()


def _analyse_shapes() -> None:
    """Let msgspec analyse the largest shapes now, as it does at first use; it caches the result with the class."""
    import msgspec

    from coder.api.templates.template_versions import TemplateVersion
    from coder.api.workspaces.workspaces import WorkspacesResponse

    for shape in (WorkspacesResponse, TemplateVersion):
        msgspec.json.Decoder(shape)
