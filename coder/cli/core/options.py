"""Options of a command: one frozen class, in which each field has its complete description.

    class ShowOptions(Options):
        "Options of `coder show`."

        details: bool = option(False, "Also show apps, metadata and every other detail of each resource.")

The flag is the attribute's name with dashes unless `flag` names another. The kind of value is the annotation (`Url`,
`HostPort` and `AllowList` are texts of a form). A field with a plain value has no flag: functions that serve several
commands are typed with a class of such fields, and the commands that have the flag override them.

Help texts list a class's own fields before those of its bases, or after them with `bases_first=True`. A value like
`yes: bool = YES` shares a description.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import ClassVar, Self, TypeVar, cast, dataclass_transform

from coder.base.config import Kind, Option, OptionValue

Url = str
HostPort = str
AllowList = tuple[str, ...]
"""Values with a form, as annotations; `base/text_faults.py` explains the faults of texts."""
_KINDS: dict[str, Kind] = {
    "str": "string",
    "int": "int",
    "bool": "bool",
    "timedelta": "duration",
    "tuple[str, ...]": "string-array",
    "Url": "url",
    "HostPort": "host:port",
    "AllowList": "allow-list",
}
T = TypeVar("T", bound=OptionValue)


def _kind(annotation: str) -> Kind:
    """Return the kind of an annotation; a `Literal` is a text with choices."""
    return "string" if annotation.startswith("Literal[") else _KINDS[annotation]


class Described:
    """Description of a field until its class is complete, which has its name and its kind."""

    __slots__ = ("choices", "default", "env", "flag", "help", "hidden", "least", "secret", "short")

    def __init__(
        self,
        default: OptionValue,
        help: str,
        flag: str,
        env: str,
        short: str,
        choices: Sequence[str],
        least: timedelta,
        *,
        hidden: bool,
        secret: bool,
    ) -> None:
        self.default = default
        self.help = help
        self.flag = flag
        self.env = env
        self.short = short
        self.choices = choices
        self.least = least
        self.hidden = hidden
        self.secret = secret

    def option(self, name: str, kind: Kind) -> Option:
        """Return the option of the field with this name and kind."""
        return Option(
            name=name,
            flag=self.flag or name.replace("_", "-"),
            env=self.env,
            kind=kind,
            default=self.default,
            help=self.help,
            short=self.short,
            hidden=self.hidden,
            secret=self.secret,
            choices=tuple(self.choices),
            least=self.least,
        )


def option(
    default: T,
    help: str = "",
    *,
    flag: str = "",
    env: str = "",
    short: str = "",
    choices: Sequence[str] = (),
    least: timedelta = timedelta(),
    hidden: bool = False,
    secret: bool = False,
) -> T:
    """Return a field's description, which type checkers take for its default. `least` is the smallest duration."""
    return cast("T", Described(default, help, flag, env, short, choices, least, hidden=hidden, secret=secret))


@dataclass_transform(frozen_default=True, kw_only_default=True)
class Options:
    """Base of the options of a command. An instance has the values of one command line."""

    declared: ClassVar[tuple[Option, ...]] = ()
    """Options of the class, in the order of the help text."""

    def __init__(self, **values: object) -> None:
        vars(self).update(values)

    def __init_subclass__(cls, *, bases_first: bool = False) -> None:
        own: dict[str, Option] = {}
        for name, annotation in vars(cls).get("__annotations__", {}).items():
            described = vars(cls).get(name)
            if isinstance(described, Described):
                own[name] = described.option(name, _kind(annotation))
                setattr(cls, name, described.default)
        inherited: dict[str, Option] = {}
        for base in cls.__bases__:
            inherited |= {item.name: item for item in getattr(base, "declared", ()) if item.name not in inherited}
        merged = {**inherited, **own} if bases_first else own | {**inherited, **own}
        cls.declared = tuple(merged.values())

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"options are frozen: {name}")

    def replaced(self, values: Mapping[str, object]) -> Self:
        """Return a copy with other values of some fields."""
        return type(self)(**{**vars(self), **values})


def output_option(choices: Sequence[str] = ("table", "json"), default: str = "table") -> str:
    """Return the field `output`: the format of results."""
    return option(default, "Output format: text for people or JSON for scripts.", short="o", choices=choices)


def column_option(columns: Sequence[str], default: Sequence[str]) -> tuple[str, ...]:
    """Return the field `column`: the columns of a table."""
    return option(
        tuple(default),
        "Columns of the table, in this order, separated by commas.",
        short="c",
        choices=columns,
    )


class TableOptions(Options):
    """Format of a table; commands that print one declare both fields."""

    column: tuple[str, ...] = ()
    output: str = "table"


YES: bool = option(
    False,
    "Skip confirmation prompts, for use in scripts.",
    short="y",
)
ORG: str = option(
    "",
    "Organization to use, by name or id; required if you belong to several.",
    env="CODER_ORGANIZATION",
    short="O",
)
NEW_NAME: str = option(
    "",
    "New name; links and scripts that use the old name stop working.",
)


class YesOption(Options):
    """Confirmation without a prompt."""

    yes: bool = YES


class OrgOption(Options):
    """Selection of an organization."""

    org: str = ORG


class GlobalOptions(Options):
    """Options of every command."""

    url: str = option(
        "",
        "Address of the deployment, like https://coder.example.com; defaults to the last login.",
        env="CODER_URL",
    )
    token: str = option(
        "",
        "Session token for this command instead of the one that login stores.",
        env="CODER_SESSION_TOKEN",
        secret=True,
    )
    config_dir: str = option(
        "",
        "Directory where login stores address and token; defaults to the user's configuration directory.",
        flag="global-config",
        env="CODER_CONFIG_DIR",
    )
    header: tuple[str, ...] = option(
        (),
        "Send this header, name=value, with every request; may be repeated.",
        env="CODER_HEADER",
    )
    header_command: str = option(
        "",
        "Run this command before requests and send its output as headers, one name=value a line.",
        env="CODER_HEADER_COMMAND",
    )
    client_tls_ca_file: str = option(
        "",
        "PEM file of a certificate authority to trust for the server's certificate, like ca.pem.",
        env="CODER_CLIENT_TLS_CA_FILE",
    )
    client_tls_cert_file: str = option(
        "",
        "PEM file of the client certificate for servers that request one; requires the key too.",
        env="CODER_CLIENT_TLS_CERT_FILE",
    )
    client_tls_key_file: str = option(
        "",
        "PEM file of the private key that belongs to the client certificate.",
        env="CODER_CLIENT_TLS_KEY_FILE",
    )
    no_feature_warning: bool = option(
        False,
        "Accepted for older scripts, without effect: no feature requires a license.",
        env="CODER_NO_FEATURE_WARNING",
    )
    no_version_warning: bool = option(
        False,
        "Suppress the warning when the versions of client and server differ.",
        env="CODER_NO_VERSION_WARNING",
    )
    disable_direct: bool = option(
        False,
        "Reach workspaces through relays only, never directly from this machine.",
        flag="disable-direct-connections",
        env="CODER_DISABLE_DIRECT_CONNECTIONS",
    )
    disable_network_telemetry: bool = option(
        False,
        "Accepted for older scripts, without effect: no network telemetry is sent.",
        env="CODER_DISABLE_NETWORK_TELEMETRY",
    )
    use_keyring: bool = option(
        False,
        "Store the session token in the system's keyring (macOS Keychain, Windows Credential Manager, "
        "Secret Service) instead of a file.",
        env="CODER_USE_KEYRING",
    )
    verbose: bool = option(
        False,
        "Print each request with its status to standard error, and more details of errors.",
        env="CODER_VERBOSE",
        short="v",
    )
    force_tty: bool = option(
        False,
        "Make `coder ssh` open a remote terminal even if standard input is not a terminal.",
        env="CODER_FORCE_TTY",
    )
    no_open: bool = option(
        False,
        env="CODER_NO_OPEN",
        hidden=True,
    )
    debug_options: bool = option(
        False,
        "Print every option with its value and source, then exit without running the command.",
    )


GLOBAL_OPTIONS = GlobalOptions.declared
