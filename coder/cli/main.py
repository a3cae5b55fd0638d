"""argv -> one command. Imports only that command's module, so that start-up stays small."""

from __future__ import annotations

import sys
from collections.abc import Sequence

# words -> (module:attribute, summary). The attribute is a `Command`; nothing is imported until it is chosen.
COMMANDS: dict[str, tuple[str, str]] = {
    "agent": ("agent:AGENT", "Run the workspace agent"),
    "autoupdate": ("workspace_settings:AUTOUPDATE", "Toggle auto-update policy for a workspace"),
    "completion": ("completion:COMPLETION", "Install or update shell completion scripts"),
    "completion words": ("completion:WORDS", "What a command line may go on with"),
    "config-ssh": ("config_ssh:CONFIG_SSH", 'Add an SSH Host entry for your workspaces "ssh workspace.coder"'),
    "connect exists": ("config_ssh:CONNECT_EXISTS", "Check whether a host is reachable through a desktop tunnel"),
    "create": ("create:CREATE", "Create a workspace"),
    "debug trace": ("debug_trace:TRACE", "Watch the way to a workspace being found"),
    "delete": ("lifecycle:DELETE", "Delete a workspace"),
    "dotfiles": ("dotfiles:DOTFILES", "Personalize your workspace by applying a canonical dotfiles repository"),
    "exp example-error validation": ("experimental:VALIDATION", "Show an error of validation"),
    "exp prompt-example multi-select": ("experimental:MULTI_SELECT", "Ask for several of a list"),
    "exp prompt-example multi-select-no-defaults": (
        "experimental:MULTI_SELECT_BARE",
        "Ask for several of a list, none chosen",
    ),
    "exp prompt-example rich-multi-select": (
        "experimental:RICH_MULTI_SELECT",
        "Ask for a parameter with several values",
    ),
    "exp prompt-example rich-parameter": ("experimental:RICH_PARAMETER", "Ask for a parameter"),
    "exp prompt-example select": ("experimental:SELECT", "Ask for one of a list"),
    "exp rpty": ("experimental:RPTY", "Attach to a terminal of a workspace that outlives the connection"),
    "external-auth access-token": ("external_auth:ACCESS_TOKEN", "Print the token of an external provider"),
    "external-workspaces create": ("external_workspaces:CREATE", "Create a new external workspace"),
    "external-workspaces list": ("external_workspaces:LIST", "List external workspaces"),
    "external-workspaces agent-instructions": (
        "external_workspaces:AGENT_INSTRUCTIONS",
        "Get the instructions for an external agent",
    ),
    "favorite": ("workspace_settings:FAVORITE", "Add a workspace to your favorites"),
    "features list": ("deployment:FEATURES", "List features"),
    "gitaskpass": ("git:GITASKPASS", "Answer git's question for a name or password"),
    "gitssh": ("git:GITSSH", "Run ssh with the SSH key of the workspace's owner"),
    "groups create": ("groups:CREATE", "Create a user group"),
    "groups delete": ("groups:DELETE", "Delete a user group"),
    "groups edit": ("groups:EDIT", "Edit a user group"),
    "groups list": ("groups:LIST", "List user groups"),
    "licenses add": ("deployment:ADD_LICENSE", "Add a license; none is needed"),
    "licenses list": ("deployment:LICENSES", "List licenses"),
    "list": ("workspaces:LIST", "List workspaces"),
    "login": ("login:LOGIN", "Authenticate with a Coder deployment"),
    "login token": ("login:TOKEN", "Print the current session token"),
    "logout": ("login:LOGOUT", "Unauthenticate your local session"),
    "logs": ("workspace_logs:LOGS", "View logs for a workspace"),
    "netcheck": ("netcheck:NETCHECK", "Print network debug information for DERP and STUN"),
    "notifications custom": ("deployment:CUSTOM", "Send a custom notification"),
    "notifications pause": ("deployment:PAUSE", "Pause notifications"),
    "notifications resume": ("deployment:RESUME", "Resume notifications"),
    "notifications test": ("deployment:TEST", "Send a test notification"),
    "open app": ("open_apps:APP", "Open a workspace application"),
    "open vscode": ("open_apps:VSCODE", "Open a workspace in VS Code Desktop"),
    "organizations create": ("organizations:CREATE", "Create a new organization"),
    "organizations delete": ("organizations:DELETE", "Delete an organization"),
    "organizations list": ("organizations:LIST", "List all organizations"),
    "organizations members add": ("organizations:MEMBERS_ADD", "Add a member to the organization"),
    "organizations members edit-roles": ("organizations:MEMBERS_EDIT_ROLES", "Edit an organization member's roles"),
    "organizations members list": ("organizations:MEMBERS", "List all organization members"),
    "organizations members remove": ("organizations:MEMBERS_REMOVE", "Remove a member from the organization"),
    "organizations roles create": ("organizations:ROLES_CREATE", "Create a custom role of the organization"),
    "organizations roles show": ("organizations:ROLES_SHOW", "Show role(s)"),
    "organizations roles update": ("organizations:ROLES_UPDATE", "Update a custom role of the organization"),
    "organizations settings set group-sync": (
        "organization_settings:SET_GROUP_SYNC",
        "How groups follow from the provider's claims",
    ),
    "organizations settings set organization-sync": (
        "organization_settings:SET_ORGANIZATION_SYNC",
        "How memberships follow from the provider's claims",
    ),
    "organizations settings set role-sync": (
        "organization_settings:SET_ROLE_SYNC",
        "How roles follow from the provider's claims",
    ),
    "organizations settings set workspace-sharing": (
        "organization_settings:SET_SHARING",
        "Whether workspaces may be shared",
    ),
    "organizations settings show group-sync": (
        "organization_settings:SHOW_GROUP_SYNC",
        "How groups follow from the provider's claims",
    ),
    "organizations settings show organization-sync": (
        "organization_settings:SHOW_ORGANIZATION_SYNC",
        "How memberships follow from the provider's claims",
    ),
    "organizations settings show role-sync": (
        "organization_settings:SHOW_ROLE_SYNC",
        "How roles follow from the provider's claims",
    ),
    "organizations settings show workspace-sharing": (
        "organization_settings:SHOW_SHARING",
        "Whether workspaces may be shared",
    ),
    "organizations show": ("organizations:SHOW", "Show an organization"),
    "ping": ("ping:PING", "Ping a workspace"),
    "port-forward": ("port_forward:PORT_FORWARD", "Forward ports from a workspace to the local machine"),
    "prebuilds pause": ("deployment:PAUSE_PREBUILDS", "Make no workspaces ahead for now"),
    "prebuilds resume": ("deployment:RESUME_PREBUILDS", "Make workspaces ahead again"),
    "provisioner jobs cancel": ("provisioner_jobs:CANCEL", "Cancel a provisioner job"),
    "provisioner jobs list": ("provisioner_jobs:LIST", "List provisioner jobs"),
    "provisioner jobs why": ("provisioner_jobs:WHY", "Explain why a job waits and when it should start"),
    "provisioner keys create": ("provisioner_keys:CREATE", "Create a new provisioner key"),
    "provisioner keys delete": ("provisioner_keys:DELETE", "Delete a provisioner key"),
    "provisioner keys list": ("provisioner_keys:LIST", "List provisioner keys in an organization"),
    "provisioner list": ("provisioners:LIST", "List provisioner daemons in an organization"),
    "provisioner start": ("provisioners:START", "Run a provisioner daemon"),
    "provisionerd start": ("provisioners:LEGACY_START", "Run a provisioner daemon"),
    "publickey": ("account:PUBLICKEY", "Output your Coder public key used for Git operations"),
    "rename": ("workspace_settings:RENAME", "Rename a workspace"),
    "reset-password": ("reset_password:RESET_PASSWORD", "Directly connect to the database to reset a user's password"),
    "restart": ("lifecycle:RESTART", "Restart a workspace"),
    "schedule extend": ("workspace_schedule:EXTEND", "Extend the stop time of a currently running workspace"),
    "schedule show": ("workspace_schedule:SHOW", "Show workspace schedules"),
    "schedule start": ("workspace_schedule:START", "Edit workspace start schedule"),
    "schedule stop": ("workspace_schedule:STOP", "Edit workspace stop schedule"),
    "secret create": ("secrets:CREATE", "Create a secret"),
    "secret delete": ("secrets:DELETE", "Delete a secret"),
    "secret import": ("secrets:IMPORT", "Create the secrets of a file"),
    "secret list": ("secrets:LIST", "List secrets, or show one; never their values"),
    "secret update": ("secrets:UPDATE", "Change a secret"),
    "server": ("server:SERVER", "Start a Coder server"),
    "server create-admin-user": ("server_database:CREATE_ADMIN", "Create a user who may do everything"),
    "server dbcrypt decrypt": ("server_database:DECRYPT", "Store everything in the open again"),
    "server dbcrypt delete": ("server_database:FORGET", "Delete everything that is sealed"),
    "server dbcrypt rotate": ("server_database:ROTATE", "Seal what is secret in the database with a new key"),
    "server fix-oidc-links": ("server_database:FIX_LINKS", "Untie accounts from a former OpenID provider"),
    "server postgres-builtin-serve": ("server_database:BUILTIN_SERVE", "Run the built-in database without its server"),
    "server postgres-builtin-url": ("server_database:BUILTIN_URL", "Print the URL of the built-in database"),
    "sharing add": ("sharing:ADD", "Share a workspace with a user or group"),
    "sharing remove": ("sharing:REMOVE", "Take shared access to a workspace back"),
    "sharing status": ("sharing:STATUS", "List whom a workspace is shared with"),
    "show": ("workspaces:SHOW", "Display details of a workspace's resources and agents"),
    "speedtest": ("speedtest:SPEEDTEST", "Run upload and download tests from your machine to a workspace"),
    "ssh": ("ssh:SSH", "Start a shell into a workspace or run a command"),
    "start": ("lifecycle:START", "Start a workspace"),
    "stat": ("stat:STAT", "Show resource usage for the current workspace"),
    "stat cpu": ("stat:CPU", "Show CPU usage, in cores"),
    "stat disk": ("stat:DISK", "Show disk usage, in gigabytes"),
    "stat mem": ("stat:MEM", "Show memory usage, in gigabytes"),
    "state pull": ("workspace_settings:STATE_PULL", "Pull a Terraform state file from a workspace"),
    "state push": ("workspace_settings:STATE_PUSH", "Push a Terraform state file to a workspace"),
    "stop": ("lifecycle:STOP", "Stop a workspace"),
    "support bundle": ("support:BUNDLE", "Write an archive that helps to find out what is wrong"),
    "task create": ("tasks:CREATE", "Create a task"),
    "task delete": ("tasks:DELETE", "Delete tasks"),
    "task list": ("tasks:LIST", "List tasks"),
    "task logs": ("tasks:LOGS", "Show what a task and its user said"),
    "task pause": ("tasks:PAUSE", "Pause a task: its workspace stops"),
    "task resume": ("tasks:RESUME", "Let a paused task go on"),
    "task send": ("tasks:SEND", "Give a task more input"),
    "task status": ("tasks:STATUS", "Show how a task is doing"),
    "templates archive": ("template_settings:ARCHIVE", "Archive unused or failed template versions"),
    "templates create": ("templates:CREATE", "Create a template from the current directory or as specified by flag"),
    "templates delete": ("templates:DELETE", "Delete templates"),
    "templates edit": ("template_settings:EDIT", "Edit the metadata of a template by name"),
    "templates init": ("templates:INIT", "Get started with a templated template"),
    "templates list": ("templates:LIST", "List all the templates available for the organization"),
    "templates presets list": ("template_versions:PRESETS", "List all presets of the specified template"),
    "templates pull": ("template_settings:PULL", "Download a version of a template to a path"),
    "templates push": ("templates:PUSH", "Create or update a template from the current directory"),
    "templates versions archive": ("template_versions:ARCHIVE", "Archive a template version(s)"),
    "templates versions list": ("template_versions:LIST", "List all the versions of the specified template"),
    "templates versions promote": ("template_versions:PROMOTE", "Promote a template version to active"),
    "templates versions unarchive": ("template_versions:UNARCHIVE", "Unarchive a template version(s)"),
    "terraform-provider": (
        "terraform_provider:TERRAFORM_PROVIDER",
        "Serve the coder/coder Terraform provider, or write a mirror of it",
    ),
    "tokens create": ("tokens:CREATE", "Create a token"),
    "tokens list": ("tokens:LIST", "List tokens"),
    "tokens remove": ("tokens:REMOVE", "Expire or delete a token"),
    "tokens view": ("tokens:VIEW", "Display detailed information about a token"),
    "unfavorite": ("workspace_settings:UNFAVORITE", "Remove a workspace from your favorites"),
    "update": ("lifecycle:UPDATE", "Will update and start a given workspace if it is out of date"),
    "users activate": ("users:ACTIVATE", "Give a suspended user access again"),
    "users create": ("users:CREATE", "Create a new user"),
    "users delete": ("users:DELETE", "Delete a user by username or user_id"),
    "users edit-roles": ("users:EDIT_ROLES", "Edit a user's roles by username or id"),
    "users list": ("users:LIST", "Prints the list of users"),
    "users oidc-claims": ("users:OIDC_CLAIMS", "Show what the OpenID provider says of you"),
    "users show": ("users:SHOW", "Show a single user"),
    "users suspend": ("users:SUSPEND", "Suspend a user, who can then not log in"),
    "version": ("version:VERSION", "Show coder version"),
    "wireguard add": ("wireguard_clients:ADD", "Let a device with any WireGuard app reach your workspaces"),
    "wireguard list": ("wireguard_clients:LIST", "List your WireGuard clients and what they may reach"),
    "wireguard remove": ("wireguard_clients:REMOVE", "Cut a WireGuard client off"),
    "whoami": ("login:WHOAMI", "Fetch authenticated user info for Coder deployment"),
    "workspace-proxy create": ("workspace_proxies:CREATE", "Create a workspace proxy"),
    "workspace-proxy delete": ("workspace_proxies:DELETE", "Delete a workspace proxy"),
    "workspace-proxy edit": ("workspace_proxies:EDIT", "Change a workspace proxy"),
    "workspace-proxy ls": ("workspace_proxies:LIST", "List workspace proxies"),
    "workspace-proxy regenerate-token": ("workspace_proxies:REGENERATE", "Give a workspace proxy a new token"),
    "workspace-proxy server": ("workspace_proxy_server:SERVER", "Start a workspace proxy"),
}

ALIASES: dict[str, str] = {
    "ls": "list",
    "rm": "delete",
    "external-workspaces ls": "external-workspaces list",
    "template": "templates",
    "templates ls": "templates list",
    "templates presets ls": "templates presets list",
    "templates version": "templates versions",
    "templates versions ls": "templates versions list",
    "templates rm": "templates delete",
    "provisioners": "provisioner",
    "provisioner ls": "provisioner list",
    "provisioner job": "provisioner jobs",
    "provisioner key": "provisioner keys",
    "provisioner jobs ls": "provisioner jobs list",
    "provisioner keys ls": "provisioner keys list",
    "provisioner keys rm": "provisioner keys delete",
    "tunnel": "port-forward",
    "fav": "favorite",
    "favourite": "favorite",
    "unfav": "unfavorite",
    "unfavourite": "unfavorite",
    "auto-update": "autoupdate",
    "feature": "features",
    "features ls": "features list",
    "group": "groups",
    "groups ls": "groups list",
    "groups rm": "groups delete",
    "license": "licenses",
    "licenses ls": "licenses list",
    "notification": "notifications",
    "share": "sharing",
    "token": "tokens",
    "tokens ls": "tokens list",
    "tokens rm": "tokens remove",
    "tokens delete": "tokens remove",
    "tokens show": "tokens view",
    "user": "users",
    "users ls": "users list",
    "users rm": "users delete",
    "users edit-role": "users edit-roles",
    "users inspect": "users show",
    "organization": "organizations",
    "org": "organizations",
    "orgs": "organizations",
    "organizations ls": "organizations list",
    "organizations member": "organizations members",
    "organizations members ls": "organizations members list",
    "organizations members rm": "organizations members remove",
    "organizations members edit-role": "organizations members edit-roles",
    "organizations role": "organizations roles",
    "schedule override-stop": "schedule extend",
    "wg add": "wireguard add",
    "wg list": "wireguard list",
    "wg ls": "wireguard list",
    "wg remove": "wireguard remove",
    "wg rm": "wireguard remove",
    "wireguard ls": "wireguard list",
    "wireguard rm": "wireguard remove",
    "tasks": "task",
    "task ls": "task list",
    "task rm": "task delete",
    "secrets": "secret",
    "secret ls": "secret list",
    "secret rm": "secret delete",
    "wsproxy": "workspace-proxy",
    "workspace-proxy list": "workspace-proxy ls",
    "workspace-proxy rm": "workspace-proxy delete",
    "organizations setting": "organizations settings",
}

GROUPS: dict[str, str] = {
    "connect": "Desktop tunnels",
    "debug": "Look inside this program",
    "external-workspaces": "Create or manage external workspaces",
    "provisioner": "View and manage provisioner daemons and jobs",
    "provisioner jobs": "View, explain and cancel provisioner jobs",
    "provisioner keys": "Manage provisioner keys",
    "provisionerd": "Manage provisioner daemons",
    "features": "List Enterprise features",
    "groups": "Manage groups",
    "licenses": "Add, delete, and list licenses",
    "notifications": "Manage Coder notifications",
    "open": "Open a workspace",
    "organizations": "Organization related commands",
    "organizations members": "Manage organization members",
    "organizations roles": "Manage organization roles.",
    "schedule": "Schedule automated start and stop times for workspaces",
    "sharing": "Share workspaces with others",
    "state": "Manually manage Terraform state to fix broken workspaces",
    "templates": "Manage templates",
    "templates presets": "Manage presets of the specified template",
    "templates versions": "Manage different versions of the specified template",
    "tokens": "Manage personal access tokens",
    "users": "Manage users",
    "wireguard": "Reach workspaces with any WireGuard app",
    "task": "Manage tasks",
    "secret": "Manage secrets of your workspaces",
    "external-auth": "Manage external authentication",
    "prebuilds": "Manage workspaces made ahead",
    "workspace-proxy": "Manage and run workspace proxies",
    "server dbcrypt": "Manage the encryption of the database",
    "exp": "Commands that may change or go",
    "exp prompt-example": "How prompts look",
    "exp example-error": "How errors look",
    "support": "Commands for troubleshooting",
    "organizations settings": "Settings of an organization",
    "organizations settings show": "Print settings as JSON",
    "organizations settings set": "Change settings, given as JSON on standard input",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line. Returns the exit code: 0, the command's own, or 1 for a failure."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words and words[0] == "--version":
        words = ["version", *words[1:]]
    if len(words) == 1 and words[0].startswith(("Username for '", "Password for '")):
        words = ["gitaskpass", *words]  # git asks: an askpass program is given nothing but the question
    try:
        return _run(words)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of our output (head, grep -q) has seen enough.
        sys.stderr.close()
        return 141


def _run(words: list[str]) -> int:
    name, rest = _choose(words)
    asks_help = any(word in {"-h", "--help"} for word in _before_raw(name, rest))
    if name is None or name in GROUPS or (asks_help and name not in COMMANDS):
        return _group(name or "", rest, asks_help)
    command = load(name)
    if asks_help:
        from coder.cli.command import help_text

        sys.stdout.write(help_text(command, children(name)))
        return 0
    return _invoke(command, rest)


def _before_raw(name: str | None, rest: list[str]) -> list[str]:
    """The words in which --help is ours: for a remote command only those before it."""
    if name != "ssh":
        return rest[: rest.index("--")] if "--" in rest else rest
    seen: list[str] = []
    for word in rest:
        if not word.startswith("-") and any(not earlier.startswith("-") for earlier in seen):
            break
        seen.append(word)
    return seen


def _choose(words: list[str]) -> tuple[str | None, list[str]]:
    """The longest run of leading words that names a command or group, global flags skipped over."""
    flags, rest = _leading_flags(words)
    best: tuple[str | None, list[str]] = (None, rest)
    name = ""
    for count in range(1, min(4, len(rest)) + 1):
        # Word by word, so that the alias of a group is good for everything in it.
        name = f"{name} {rest[count - 1]}".lstrip()
        name = ALIASES.get(name, name)
        if name in COMMANDS or name in GROUPS:
            best = (name, rest[count:])
    return best[0], flags + best[1]


def _leading_flags(words: list[str]) -> tuple[list[str], list[str]]:
    from coder.cli.command import GLOBAL_OPTIONS

    kinds = {f"--{option.flag}": option.kind for option in GLOBAL_OPTIONS}
    index = 0
    while index < len(words) and words[index].startswith("-") and words[index] not in {"-h", "--help"}:
        takes_value = kinds.get(words[index], "bool") != "bool"
        index += 2 if takes_value else 1
    return words[:index], words[index:]


def load(name: str):  # type: ignore[no-untyped-def]
    """The `Command` of a name in the table."""
    from importlib import import_module

    module, _, attribute = COMMANDS[name][0].partition(":")
    return getattr(import_module(f"coder.cli.{module}"), attribute)


def children(name: str) -> list[tuple[str, str]]:
    """(word, summary) of the commands directly below a name; of everything at the top for an empty one."""
    prefix = f"{name} " if name else ""
    found = {
        key[len(prefix) :]: text
        for key, (_, text) in COMMANDS.items()
        if key.startswith(prefix) and " " not in key[len(prefix) :]
    }
    found |= {
        key[len(prefix) :]: text
        for key, text in GROUPS.items()
        if key.startswith(prefix) and " " not in key[len(prefix) :]
    }
    return sorted(found.items())


def _group(name: str, rest: list[str], asks_help: bool) -> int:
    from coder.cli.command import GLOBAL_OPTIONS, Command, help_text

    words = [word for word in rest if not word.startswith("-")]
    if words and not asks_help:
        shown = f"coder {name}".rstrip()
        if name:
            sys.stderr.write(f'---\nerror: unrecognized subcommand "{words[0]}"\n')
        sys.stderr.write(f'Encountered an error running "{shown}", see "{shown} --help" for more information\n')
        sys.stderr.write(f'error: unrecognized subcommand "{words[0]}"\n')
        return 1
    summary = GROUPS.get(name, "Coder: self-hosted remote development environments.")
    options = () if name else GLOBAL_OPTIONS
    command = Command(words=name, summary=summary, run=lambda _: 0, options=options, usage="[subcommand]")
    sys.stdout.write(help_text(command, children(name)))
    return 0


def _invoke(command, words: list[str]) -> int:  # type: ignore[no-untyped-def]
    from coder.base.config import process_environment
    from coder.base.errors import CoderError
    from coder.cli.command import UsageError, parse
    from coder.cli.failures import error_text

    _take_termination_for_interrupt()
    try:
        return command.run(parse(command, words, process_environment())) or 0
    except UsageError as error:
        sys.stderr.write(f"{error.message}\n")
        return 1
    except CoderError as error:
        shown = f"coder {command.words}"
        sys.stderr.write(f'Encountered an error running "{shown}", see "{shown} --help" for more information\n')
        sys.stderr.write(f"error: {error_text(error, is_terminal=sys.stderr.isatty())}\n")
        return 1
    except BaseExceptionGroup as group:
        return _explain_group(command, group)


def _take_termination_for_interrupt() -> None:
    """SIGTERM ends a command as Ctrl-C does: connections closed, terminal restored. Daemons listen for themselves."""
    import signal
    import threading

    on_main_thread = threading.current_thread() is threading.main_thread()
    if on_main_thread and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGTERM, lambda _number, _frame: signal.raise_signal(signal.SIGINT))


def _explain_group(command, group: BaseExceptionGroup) -> int:  # type: ignore[no-untyped-def]
    """A nursery wraps what happened: one known error inside is that error; Ctrl-C is Ctrl-C; else a real defect."""
    from coder.base.errors import CoderError
    from coder.cli.failures import error_text

    inner = _flatten(group)
    if any(isinstance(error, KeyboardInterrupt) for error in inner):
        return 130
    known = [error for error in inner if isinstance(error, CoderError)]
    if len(known) != len(inner):
        raise group
    sys.stderr.write(f'Encountered an error running "coder {command.words}", see "coder {command.words} --help" ')
    sys.stderr.write("for more information\n")
    for error in known:
        sys.stderr.write(f"error: {error_text(error, is_terminal=sys.stderr.isatty())}\n")
    return 1


def _flatten(group: BaseExceptionGroup) -> list[BaseException]:
    found: list[BaseException] = []
    for error in group.exceptions:
        found += _flatten(error) if isinstance(error, BaseExceptionGroup) else [error]
    return found
