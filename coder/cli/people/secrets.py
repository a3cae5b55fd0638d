"""`coder secret`: secrets of a user for their workspaces. Values are read from standard input rather than argv."""

from __future__ import annotations

import sys
from pathlib import Path
from urllib.parse import quote

from coder.api.people.user_secrets import UserSecret
from coder.base.config import Option
from coder.base.errors import CoderError
from coder.cli.core import session
from coder.cli.core.command import YES, Command, Invocation, column_option, output_option
from coder.cli.core.failures import add_action_to_errors
from coder.cli.ui.output import Row, ask, confirm, go_time, print_rows, say
from coder.client.answers import read, read_rows

COLUMNS = ("created", "name", "updated", "env", "file", "enabled", "description")
_ROOT = "/api/v2/users/me/secrets"
_FORMATS = {".json": "json", ".yaml": "yaml", ".yml": "yaml", ".env": "env"}
# flag -> the API's name
_FIELDS = {"description": "description", "env": "env_name", "file": "file_path"}


def _create(invocation: Invocation) -> int:
    name = invocation.args[0]
    body: dict[str, object] = {"name": name, "value": _value(invocation), "enabled": invocation["enabled"]}
    body |= {field: invocation[flag] for flag, field in _FIELDS.items() if invocation[flag]}
    client = session.client(invocation)
    with add_action_to_errors(f'create secret "{name}"'):
        client.request("POST", _ROOT, json=body)
    sys.stdout.write(f"Created secret {name}.\n")
    return 0


def _value(invocation: Invocation) -> str:
    """Return `--value`, a hidden answer at a terminal, or standard input without its final line break."""
    if invocation["value"]:
        return str(invocation["value"])
    if sys.stdin.isatty():
        return ask("Value of the secret:", secret=True)
    return sys.stdin.read().removesuffix("\n")


def _update(invocation: Invocation) -> int:
    name = invocation.args[0]
    body: dict[str, object] = {field: invocation[flag] for flag, field in _FIELDS.items() if invocation.given(flag)}
    if invocation.given("enabled"):
        body["enabled"] = invocation["enabled"]
    if invocation.given("value"):
        body["value"] = invocation["value"]
    if not body and not sys.stdin.isatty():
        piped = sys.stdin.read().removesuffix("\n")
        body = {"value": piped} if piped else {}
    if not body:
        raise CoderError("nothing", "no changes were requested", "Set --value, --env, --file or --description.")
    client = session.client(invocation)
    with add_action_to_errors(f'update secret "{name}"'):
        client.request("PATCH", f"{_ROOT}/{quote(name, safe='')}", json=body)
    sys.stdout.write(f"Updated secret {name}.\n")
    return 0


def _set_enabled(invocation: Invocation, *, enabled: bool) -> int:
    name, verb = invocation.args[0], "enable" if enabled else "disable"
    client = session.client(invocation)
    with add_action_to_errors(f'{verb} secret "{name}"'):
        client.request("PATCH", f"{_ROOT}/{quote(name, safe='')}", json={"enabled": enabled})
    sys.stdout.write(f"Secret {name} is {verb}d.\n")
    return 0


def _delete(invocation: Invocation) -> int:
    name = invocation.args[0]
    client = session.client(invocation)
    confirm(invocation, f"Delete secret {name}?")
    with add_action_to_errors(f'delete secret "{name}"'):
        client.request("DELETE", f"{_ROOT}/{quote(name, safe='')}")
    sys.stdout.write(f"Deleted secret {name}.\n")
    return 0


def _list(invocation: Invocation) -> int:
    client = session.client(invocation)
    with add_action_to_errors("list secrets"):
        if invocation.args:
            answer = client.request("GET", f"{_ROOT}/{quote(invocation.args[0], safe='')}")
            secrets = [(read(answer, UserSecret), answer.json())]
        else:
            secrets = read_rows(client.request("GET", _ROOT), UserSecret)
    if not secrets and invocation["output"] != "json":
        say("No secrets found.")
        return 0
    print_rows(invocation, lambda: [_row(answer) for answer, _ in secrets], lambda: [raw for _, raw in secrets])
    return 0


def _row(secret: UserSecret) -> Row:
    return {
        "name": secret.name,
        "created": go_time(secret.created_at),
        "updated": go_time(secret.updated_at),
        "env": secret.env_name,
        "file": secret.file_path,
        "enabled": secret.enabled,
        "description": secret.description,
    }


def _import(invocation: Invocation) -> int:
    source = invocation.args[0]
    form = invocation["input_format"] or _FORMATS.get(Path(source).suffix.lower()) or ("env" if source != "-" else "")
    if not form:
        raise CoderError(
            "format", "the format of standard input is unknown", "Set --input-format to env, json or yaml."
        )
    try:
        content = sys.stdin.read() if source == "-" else Path(source).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CoderError("no_file", f"cannot read {source}") from error
    client = session.client(invocation)
    with add_action_to_errors("import secrets"):
        created = read(
            client.request("POST", f"{_ROOT}/batch", json={"format": form, "content": content}), list[UserSecret]
        )
    sys.stdout.write(f"Imported {len(created)} secrets.\n")
    return 0


def _texts(value_help: str) -> tuple[Option, ...]:
    return (
        Option("value", "value", secret=True, help=value_help),
        Option("description", "description", help="Description of what the secret is for."),
        Option("env", "env", help="Environment variable to set in workspaces, like DB_PASSWORD."),
        Option("file", "file", help="File to write in workspaces; its path starts with ~/ or /."),
    )


def _enabled(*, default: bool) -> Option:
    return Option(
        "enabled",
        "enabled",
        kind="bool",
        default=default,
        help="Pass the secret to workspaces; a disabled secret is kept.",
    )


CREATE = Command(
    words="secret create",
    summary="Create a secret",
    usage="<name>",
    run=_create,
    min_args=1,
    max_args=1,
    options=(
        *_texts("Value of the secret; standard input is safer, as process lists show arguments."),
        _enabled(default=True),
    ),
)
UPDATE = Command(
    words="secret update",
    summary="Update a secret",
    usage="<name>",
    run=_update,
    min_args=1,
    max_args=1,
    options=(
        *_texts("New value; standard input is safer, as process lists show arguments."),
        _enabled(default=False),
    ),
)
ENABLE = Command(
    words="secret enable",
    summary="Enable a disabled secret",
    usage="<name>",
    run=lambda invocation: _set_enabled(invocation, enabled=True),
    min_args=1,
    max_args=1,
)
DISABLE = Command(
    words="secret disable",
    summary="Disable a secret without deleting it",
    usage="<name>",
    run=lambda invocation: _set_enabled(invocation, enabled=False),
    min_args=1,
    max_args=1,
)
DELETE = Command(
    words="secret delete",
    summary="Delete a secret",
    usage="<name>",
    run=_delete,
    min_args=1,
    max_args=1,
    options=(YES,),
)
LIST = Command(
    words="secret list",
    summary="List secrets, or show one, without values",
    usage="[name]",
    run=_list,
    max_args=1,
    options=(
        column_option(COLUMNS, ("name", "created", "updated", "env", "file", "enabled", "description")),
        output_option(),
    ),
)
IMPORT = Command(
    words="secret import",
    summary="Create secrets from a file",
    usage="<file|->",
    run=_import,
    min_args=1,
    max_args=1,
    options=(
        Option(
            "input_format",
            "input-format",
            choices=("env", "json", "yaml"),
            help="Format of the file; defaults to that of its extension.",
        ),
    ),
)
