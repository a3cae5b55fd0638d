"""`coder server`: runs the server with settings from flags, environment and a YAML file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from coder.base.config import Inputs
from coder.base.errors import CoderError
from coder.cli import session
from coder.cli.command import Command, Invocation
from coder.cli.log_files import open_logs
from coder.coderd.config.options import OPTIONS


def _run(invocation: Invocation) -> int:
    from coder.base.open_files import raise_open_files
    from coder.base.threads import run_trio
    from coder.coderd.app import run_server
    from coder.coderd.config.experiments import NOT_SERVED
    from coder.coderd.config.reading import server_config
    from coder.coderd.config.without_effect import ignored_settings

    inputs = Inputs(flags=invocation.raw, env=invocation.env, file=_yaml(invocation["config"]))
    config = server_config(inputs, session.config_dir(invocation))
    if invocation["write_config"]:
        _print_yaml(config.resolved)
        return 0
    _log_to(config)
    _warn_of_misspelt_variables(invocation)
    _check_machine(config)
    if config.resolved is not None and (ignored := ignored_settings(config.resolved)):
        from coder.base.log import get_logger

        get_logger("server").warn("settings without effect in this release", settings=" ".join(ignored))
    if absent := [name for name in config.experiments if name in NOT_SERVED]:
        from coder.base.log import get_logger

        for name in absent:
            get_logger("server").warn("an experiment is not served", experiment=name, reason=NOT_SERVED[name])
    from coder.cli.provisioning.provisioner_daemons import builtin_daemons

    def announce(text: str) -> None:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()

    async def main() -> None:
        await run_server(config, builtin_daemons, announce=announce)

    raise_open_files()
    run_trio(main)
    announce("Shut down cleanly.")
    return 0


def _warn_of_misspelt_variables(invocation: Invocation) -> None:
    """Log variables that look like a misspelt setting: nothing reads them, and their value has no effect."""
    from coder.base.log import get_logger
    from coder.cli.advice.suggestions import misspelt_variables
    from coder.cli.command import GLOBAL_OPTIONS

    known = (option.env for option in (*OPTIONS, *GLOBAL_OPTIONS))
    for name, meant in misspelt_variables(invocation.env, known):
        get_logger("server").warn("an unknown variable has no effect", variable=name, did_you_mean=meant)


def _check_machine(config: Any) -> None:
    """Refuse to start with directories or a Terraform that cannot be used."""
    from coder.base.config import process_environment
    from coder.base.log import get_logger
    from coder.cli.server.start_checks import DEFAULT_TERRAFORM, check_folder, check_terraform
    from coder.provisionerd.config import RELEASES_VARIABLE

    if not config.postgres_url.reveal():
        check_folder("global-config", config.data_dir)
    check_folder("cache-dir", config.cache_dir)
    if config.provisioner_daemons < 1:
        return
    environment = process_environment()
    try:
        check_terraform(
            config.terraform_path, environment, can_download=environment.get(RELEASES_VARIABLE, "") != "off"
        )
    except CoderError as error:
        if config.terraform_path != DEFAULT_TERRAFORM:
            raise
        get_logger("provisionerd").warn("built-in provisioners fail every build", reason=error.message)


def _yaml(path: str) -> dict[str, Any]:
    if not path:
        return {}
    from coder.base.yaml_documents import YamlError, read_document

    try:
        content = read_document(Path(path).expanduser().read_text(encoding="utf-8"))
    except OSError as error:
        reason = error.strerror or str(error)
        raise CoderError(
            "bad_config", f"cannot read settings from {path}: {reason}", "Name a readable file with --config."
        ) from None
    except UnicodeDecodeError as error:
        raise CoderError("bad_config", f"cannot read settings from {path}", "Save it as UTF-8.") from error
    except YamlError as error:
        raise CoderError("bad_config", f"cannot read settings from {path}: {error}") from None
    if content is not None and not isinstance(content, dict):
        raise CoderError(
            "bad_config", f"{path} does not contain settings", "Compare with `coder server --write-config`."
        )
    return content or {}


def _print_yaml(resolved: Any) -> None:
    """Map deprecated names to current ones: a deprecated setting in any source counts as given, even with its default
    value."""
    import yaml

    from coder.coderd.config.options import FORMER
    from coder.coderd.config.settings import effective_name

    tree: dict[str, Any] = {}
    for option in OPTIONS:
        if not option.yaml or option.secret or option.name in FORMER:
            continue
        if option.instead and resolved.sources[option.name] == "default":
            continue
        node = tree
        *parents, leaf = option.yaml.split(".")
        for parent in parents:
            node = node.setdefault(parent, {})
        value = resolved[effective_name(resolved, option.name)]
        node[leaf] = list(value) if isinstance(value, tuple) else _plain(value)
    sys.stdout.write(yaml.safe_dump(tree, sort_keys=False))


def _plain(value: Any) -> Any:
    from datetime import timedelta

    from coder.base.duration import format_duration

    if isinstance(value, timedelta):
        return format_duration(value)
    return value if isinstance(value, str | int | float | bool | list | dict) or value is None else str(value)


def _log_to(config: Any) -> None:
    resolved = config.resolved
    paths = resolved["log_human"], resolved["log_json"], resolved["log_stackdriver"]
    open_logs(*paths, verbose=bool(resolved["verbose"]), debug=resolved["log_filter"])


SERVER = Command(
    words="server",
    summary="Start a Coder server",
    run=_run,
    max_args=0,
    options=OPTIONS,
)
