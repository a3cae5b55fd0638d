"""`coder server`: runs the server with settings from flags, environment and a YAML file."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from coder.base.config import Inputs, Resolved, process_environment
from coder.base.duration import format_duration
from coder.base.errors import CoderError
from coder.base.json_types import Json
from coder.base.log import get_logger
from coder.base.open_files import raise_open_files
from coder.base.threads import convert_thread_refusals, run_trio
from coder.cli.core import session
from coder.cli.core.command import Invocation, implements
from coder.cli.core.log_files import open_logs
from coder.cli.core.options import GLOBAL_OPTIONS
from coder.cli.core.suggestions import misspelt_variables, quoted_variables, unknown_keys
from coder.cli.declarations.server.server import SERVER, ServerOptions
from coder.cli.provisioning.builtin_daemons import builtin_daemons
from coder.cli.server.announcing import announce
from coder.cli.server.process_modules import load_late_modules
from coder.cli.server.start_checks import DEFAULT_TERRAFORM, check_folder, check_terraform, with_stun_port
from coder.cli.ui.output import say
from coder.coderd.app import run_server
from coder.coderd.config.experiments import NOT_SERVED
from coder.coderd.config.options import FORMER, OPTIONS
from coder.coderd.config.reading import server_config
from coder.coderd.config.settings import ServerConfig
from coder.coderd.config.without_effect import ignored_settings
from coder.coderd.processes import reload
from coder.coderd.processes.run import run_processes
from coder.coderd.store.engine.connection_string import parse_connection_string
from coder.net.aws_login import login_of, with_login
from coder.net.masking import shown_setting
from coder.provisionerd.config import RELEASES_VARIABLE


@implements(SERVER)
def _run(invocation: Invocation[ServerOptions]) -> int:
    file = _yaml(invocation.options.config)
    inputs = Inputs(flags=invocation.raw, env=invocation.env, file=file)
    config = server_config(inputs, session.config_dir(invocation))
    resolved = config.resolved or Resolved({}, {})
    if invocation.options.write_config:
        _print_yaml(resolved)
        return 0
    _log_to(resolved)
    _warn_of_misspelt_variables(invocation)
    for key, meant in unknown_keys(file, [option.yaml for option in OPTIONS]):
        hint = {"did_you_mean": meant} if meant else {}
        get_logger("server").warn("an unknown key of the settings file has no effect", key=key, **hint)
    _check_machine(config)
    config = with_stun_port(config)
    if ignored := ignored_settings(resolved):
        get_logger("server").warn("settings without effect in this release", settings=" ".join(ignored))
    if absent := [name for name in config.experiments if name in NOT_SERVED]:
        for name in absent:
            get_logger("server").warn("an experiment is not served", experiment=name, reason=NOT_SERVED[name])

    async def main() -> None:
        await run_server(config, builtin_daemons, announce=announce)

    raise_open_files()
    if config.processes > 1 or reload.is_under_supervisor():
        convert_thread_refusals()
        run_processes(config, builtin_daemons, announce, load_late_modules)
        if reload.is_trial():
            return 0
    else:
        run_trio(main)
    announce("Shut down cleanly.")
    return 0


def _warn_of_misspelt_variables(invocation: Invocation[ServerOptions]) -> None:
    """Log variables that look like a misspelt setting, which nothing reads, and values that kept quotation marks."""
    known = [option.env for option in (*OPTIONS, *GLOBAL_OPTIONS)]
    for name, meant in misspelt_variables(invocation.env, known):
        get_logger("server").warn("an unknown variable has no effect", variable=name, did_you_mean=meant)
    for name in quoted_variables(invocation.env, known):
        get_logger("server").warn("the quotation marks around a variable's value are part of it", variable=name)


def _check_machine(config: ServerConfig) -> None:
    """Refuse to start with directories or a Terraform that cannot be used."""
    if not config.postgres_url.reveal():
        check_folder("global-config", config.data_dir)
    elif login := login_of(
        parse_connection_string(with_login(config.postgres_url.reveal(), config.postgres_auth)).parameters
    ):
        login.password()  # without credentials every connection would fail, and the server would wait for them
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


def _yaml(path: str) -> dict[str, Json]:
    if not path:
        return {}
    from coder.base.yaml_documents import YamlError, read_document
    from coder.cli.core.written_text import read_written

    try:
        content = read_document(read_written(Path(path).expanduser()))
    except OSError as error:
        reason = error.strerror or str(error)
        raise CoderError(
            "bad_config", f"cannot read settings from {path}: {reason}", "Name a readable file with --config."
        ) from None
    except UnicodeError as error:
        raise CoderError("bad_config", f"cannot read settings from {path}", "Save it as UTF-8.") from error
    except YamlError as error:
        raise CoderError("bad_config", f"cannot read settings from {path}: {error}") from None
    if content is not None and not isinstance(content, dict):
        raise CoderError(
            "bad_config", f"{path} does not contain settings", "Compare with `coder server --write-config`."
        )
    return content or {}


def _print_yaml(resolved: Resolved) -> None:
    """Map deprecated names to current ones: a deprecated setting in any source counts as given, even with its default
    value. Secrets are left out."""
    import yaml

    from coder.coderd.config.settings import effective_name

    tree: dict[str, Json] = {}
    for option in OPTIONS:
        if not option.yaml or option.secret or option.name in FORMER:
            continue
        if option.instead and resolved.sources[option.name] == "default":
            continue
        value = resolved[effective_name(resolved, option.name)]
        if shown_setting(value) != value:
            say(f"--{option.flag} is left out, because its address contains a secret")
            continue
        _insert(tree, option.yaml.split("."), list(value) if isinstance(value, tuple) else _plain(value))
    sys.stdout.write(yaml.safe_dump(tree, sort_keys=False))


def _insert(tree: dict[str, Json], path: Sequence[str], value: Json) -> None:
    name, *rest = path
    if not rest:
        tree[name] = value
    elif isinstance(inner := tree.setdefault(name, {}), dict):
        _insert(inner, rest, value)


def _plain(value: Json | timedelta) -> Json:
    if isinstance(value, timedelta):
        return format_duration(value)
    return value if isinstance(value, str | int | float | bool | list | dict) or value is None else str(value)


def _log_to(resolved: Resolved) -> None:
    paths = (resolved.text(name) for name in ("log_human", "log_json", "log_stackdriver"))
    open_logs(*paths, verbose=resolved.flag("verbose"), debug=resolved.texts("log_filter"))
