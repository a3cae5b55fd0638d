"""`coder secret`: secrets of a user for their workspaces. Values are read from standard input rather than argv."""

from __future__ import annotations

import sys
from pathlib import Path
from urllib.parse import quote

from coder.api.people.user_secrets import UserSecret
from coder.base.config import OptionValue
from coder.base.errors import CoderError
from coder.base.written_text import read_written
from coder.cli.core import session
from coder.cli.core.command import Invocation, implements
from coder.cli.core.failures import add_action_to_errors
from coder.cli.core.options import Options, YesOption
from coder.cli.declarations.people.secrets import (
    CREATE,
    DELETE,
    DISABLE,
    ENABLE,
    IMPORT,
    LIST,
    UPDATE,
    SecretCreateOptions,
    SecretImportOptions,
    SecretListOptions,
    SecretUpdateOptions,
)
from coder.cli.ui.output import Row, ask, confirm, go_time, print_rows, say
from coder.client.answers import read, read_rows

_ROOT = "/api/v2/users/me/secrets"
_FORMATS = {".json": "json", ".yaml": "yaml", ".yml": "yaml", ".env": "env"}
# flag -> the API's name
_FIELDS = {"description": "description", "env": "env_name", "file": "file_path"}


@implements(CREATE)
def _create(invocation: Invocation[SecretCreateOptions]) -> int:
    name = invocation.args[0]
    body: dict[str, OptionValue] = {"name": name, "value": _value(invocation), "enabled": invocation.options.enabled}
    body |= {field: value for field, value in invocation.given_values(_FIELDS).items() if value}
    client = session.client(invocation)
    with add_action_to_errors(f'create secret "{name}"'):
        client.request("POST", _ROOT, json=body)
    sys.stdout.write(f"Created secret {name}.\n")
    return 0


def _value(invocation: Invocation[SecretCreateOptions]) -> str:
    """Return `--value`, a hidden answer at a terminal, or standard input without its final line break."""
    if invocation.options.value:
        return str(invocation.options.value)
    if sys.stdin.isatty():
        return ask("Value of the secret:", secret=True)
    return sys.stdin.read().removesuffix("\n")


@implements(UPDATE)
def _update(invocation: Invocation[SecretUpdateOptions]) -> int:
    name = invocation.args[0]
    body = invocation.given_values({**_FIELDS, "enabled": "enabled", "value": "value"})
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


def _set_enabled(invocation: Invocation[Options], *, enabled: bool) -> int:
    name, verb = invocation.args[0], "enable" if enabled else "disable"
    client = session.client(invocation)
    with add_action_to_errors(f'{verb} secret "{name}"'):
        client.request("PATCH", f"{_ROOT}/{quote(name, safe='')}", json={"enabled": enabled})
    sys.stdout.write(f"Secret {name} is {verb}d.\n")
    return 0


@implements(DELETE)
def _delete(invocation: Invocation[YesOption]) -> int:
    name = invocation.args[0]
    client = session.client(invocation)
    confirm(invocation.options.yes, f"Delete secret {name}?")
    with add_action_to_errors(f'delete secret "{name}"'):
        client.request("DELETE", f"{_ROOT}/{quote(name, safe='')}")
    sys.stdout.write(f"Deleted secret {name}.\n")
    return 0


@implements(LIST)
def _list(invocation: Invocation[SecretListOptions]) -> int:
    client = session.client(invocation)
    with add_action_to_errors("list secrets"):
        if invocation.args:
            answer = client.request("GET", f"{_ROOT}/{quote(invocation.args[0], safe='')}")
            secrets = [(read(answer, UserSecret), answer.json())]
        else:
            secrets = read_rows(client.request("GET", _ROOT), UserSecret)
    if not secrets and invocation.options.output != "json":
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


@implements(IMPORT)
def _import(invocation: Invocation[SecretImportOptions]) -> int:
    source = invocation.args[0]
    form = (
        invocation.options.input_format or _FORMATS.get(Path(source).suffix.lower()) or ("env" if source != "-" else "")
    )
    if not form:
        raise CoderError(
            "format", "the format of standard input is unknown", "Set --input-format to env, json or yaml."
        )
    try:
        content = sys.stdin.read() if source == "-" else read_written(Path(source))
    except (OSError, UnicodeError) as error:
        raise CoderError("no_file", f"cannot read {source}") from error
    client = session.client(invocation)
    with add_action_to_errors("import secrets"):
        created = read(
            client.request("POST", f"{_ROOT}/batch", json={"format": form, "content": content}), list[UserSecret]
        )
    sys.stdout.write(f"Imported {len(created)} secrets.\n")
    return 0


@implements(DISABLE)
def _run_disable(invocation: Invocation[Options]) -> int:
    return _set_enabled(invocation, enabled=False)


@implements(ENABLE)
def _run_enable(invocation: Invocation[Options]) -> int:
    return _set_enabled(invocation, enabled=True)
