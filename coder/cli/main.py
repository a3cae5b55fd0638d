"""argv -> one command. Imports only that command's module, so that start-up stays small."""

from __future__ import annotations

import sys
from collections.abc import Sequence

# words -> (module:attribute, summary). The attribute is a `Command`; nothing is imported until it is chosen.
COMMANDS: dict[str, tuple[str, str]] = {
    "agent": ("agents.agent:AGENT", "Run the workspace agent"),
    "agent install": ("agents.agent_install:INSTALL", "Let this machine run the agent by itself"),
    "agent uninstall": ("agents.agent_install:UNINSTALL", "Stop the agent's service and remove it"),
    "autoupdate": ("workspaces.workspace_settings:AUTOUPDATE", "Toggle auto-update policy for a workspace"),
    "bundle": ("provisioning.bundle:BUNDLE", "Collect Terraform and providers for machines without network"),
    "completion": ("completion:COMPLETION", "Install or update shell completion scripts"),
    "completion words": ("completion:WORDS", "What a command line may go on with"),
    "config-ssh": ("network.config_ssh:CONFIG_SSH", 'Add an SSH Host entry for your workspaces "ssh workspace.coder"'),
    "connect exists": (
        "network.config_ssh:CONNECT_EXISTS",
        "Check whether a host is reachable through a desktop tunnel",
    ),
    "create": ("workspaces.create:CREATE", "Create a workspace"),
    "debug trace": ("network.debug_trace:TRACE", "Watch the way to a workspace being found"),
    "delete": ("workspaces.lifecycle:DELETE", "Delete a workspace"),
    "dotfiles": ("agents.dotfiles:DOTFILES", "Personalize your workspace by applying a canonical dotfiles repository"),
    "exp example-error validation": ("tasks.experimental:VALIDATION", "Show an error of validation"),
    "exp mcp configure claude-code": ("tasks.mcp:CLAUDE_CODE", "Let Claude Code use the tools"),
    "exp mcp configure claude-desktop": ("tasks.mcp:CLAUDE_DESKTOP", "Let Claude Desktop use the tools"),
    "exp mcp configure cursor": ("tasks.mcp:CURSOR", "Let Cursor use the tools"),
    "exp mcp server": ("tasks.mcp:SERVER", "Serve tools for a model on standard input and output"),
    "exp prompt-example multi-select": ("tasks.experimental:MULTI_SELECT", "Ask for several of a list"),
    "exp prompt-example multi-select-no-defaults": (
        "tasks.experimental:MULTI_SELECT_BARE",
        "Ask for several of a list, none chosen",
    ),
    "exp prompt-example rich-multi-select": (
        "tasks.experimental:RICH_MULTI_SELECT",
        "Ask for a parameter with several values",
    ),
    "exp prompt-example rich-parameter": ("tasks.experimental:RICH_PARAMETER", "Ask for a parameter"),
    "exp prompt-example select": ("tasks.experimental:SELECT", "Ask for one of a list"),
    "exp rpty": ("tasks.experimental:RPTY", "Attach to a terminal of a workspace that outlives the connection"),
    "exp sync complete": ("agents.sync:COMPLETE", "Mark a unit complete, so that others may start"),
    "exp sync list": ("agents.sync:LIST", "List the units"),
    "exp sync ping": ("agents.sync:PING", "Check that the agent answers scripts"),
    "exp sync start": ("agents.sync:START", "Wait for what a unit wants, then mark it started"),
    "exp sync status": ("agents.sync:STATUS", "Show a unit and what it wants"),
    "exp sync want": ("agents.sync:WANT", "Say that a unit starts only after others are complete"),
    "external-auth access-token": ("login.external_auth:ACCESS_TOKEN", "Print the token of an external provider"),
    "external-workspaces create": ("workspaces.external_workspaces:CREATE", "Create a new external workspace"),
    "external-workspaces list": ("workspaces.external_workspaces:LIST", "List external workspaces"),
    "external-workspaces agent-instructions": (
        "workspaces.external_workspaces:AGENT_INSTRUCTIONS",
        "Get the instructions for an external agent",
    ),
    "external-workspaces health": (
        "workspaces.external_workspaces:HEALTH",
        "Show how an attached machine is, and why it was away",
    ),
    "external-workspaces rotate-token": (
        "workspaces.external_workspaces:ROTATE_TOKEN",
        "Give an external agent a new token",
    ),
    "favorite": ("workspaces.workspace_settings:FAVORITE", "Add a workspace to your favorites"),
    "features list": ("server.deployment:FEATURES", "List features"),
    "gitaskpass": ("login.git:GITASKPASS", "Answer git's question for a name or password"),
    "gitssh": ("login.git:GITSSH", "Run ssh with the SSH key of the workspace's owner"),
    "groups create": ("people.groups:CREATE", "Create a user group"),
    "groups delete": ("people.groups:DELETE", "Delete a user group"),
    "groups edit": ("people.groups:EDIT", "Edit a user group"),
    "groups list": ("people.groups:LIST", "List user groups"),
    "licenses add": ("server.deployment:ADD_LICENSE", "Add a license; none is needed"),
    "licenses delete": ("server.deployment:DELETE_LICENSE", "Delete a license"),
    "licenses list": ("server.deployment:LICENSES", "List licenses"),
    "list": ("workspaces.workspaces:LIST", "List workspaces"),
    "login": ("login.login:LOGIN", "Authenticate with a Coder deployment"),
    "login token": ("login.login:TOKEN", "Print the current session token"),
    "logout": ("login.login:LOGOUT", "Unauthenticate your local session"),
    "logs": ("workspaces.workspace_logs:LOGS", "View logs for a workspace"),
    "netcheck": ("network.netcheck:NETCHECK", "Print network debug information for DERP and STUN"),
    "notifications custom": ("server.deployment:CUSTOM", "Send a custom notification"),
    "notifications pause": ("server.deployment:PAUSE", "Pause notifications"),
    "notifications resume": ("server.deployment:RESUME", "Resume notifications"),
    "notifications test": ("server.deployment:TEST", "Send a test notification"),
    "open app": ("workspaces.open_apps:APP", "Open a workspace application"),
    "open vscode": ("workspaces.open_apps:VSCODE", "Open a workspace in VS Code Desktop"),
    "organizations create": ("people.organizations:CREATE", "Create a new organization"),
    "organizations delete": ("people.organizations:DELETE", "Delete an organization"),
    "organizations list": ("people.organizations:LIST", "List all organizations"),
    "organizations members add": ("people.organizations:MEMBERS_ADD", "Add a member to the organization"),
    "organizations members edit-roles": (
        "people.organizations:MEMBERS_EDIT_ROLES",
        "Edit an organization member's roles",
    ),
    "organizations members list": ("people.organizations:MEMBERS", "List all organization members"),
    "organizations members remove": ("people.organizations:MEMBERS_REMOVE", "Remove a member from the organization"),
    "organizations roles create": ("people.organizations:ROLES_CREATE", "Create a custom role of the organization"),
    "organizations roles show": ("people.organizations:ROLES_SHOW", "Show role(s)"),
    "organizations roles update": ("people.organizations:ROLES_UPDATE", "Update a custom role of the organization"),
    "organizations settings set group-sync": (
        "people.organization_settings:SET_GROUP_SYNC",
        "How groups follow from the provider's claims",
    ),
    "organizations settings set organization-sync": (
        "people.organization_settings:SET_ORGANIZATION_SYNC",
        "How memberships follow from the provider's claims",
    ),
    "organizations settings set role-sync": (
        "people.organization_settings:SET_ROLE_SYNC",
        "How roles follow from the provider's claims",
    ),
    "organizations settings set workspace-sharing": (
        "people.organization_settings:SET_SHARING",
        "Whether workspaces may be shared",
    ),
    "organizations settings show group-sync": (
        "people.organization_settings:SHOW_GROUP_SYNC",
        "How groups follow from the provider's claims",
    ),
    "organizations settings show organization-sync": (
        "people.organization_settings:SHOW_ORGANIZATION_SYNC",
        "How memberships follow from the provider's claims",
    ),
    "organizations settings show role-sync": (
        "people.organization_settings:SHOW_ROLE_SYNC",
        "How roles follow from the provider's claims",
    ),
    "organizations settings show workspace-sharing": (
        "people.organization_settings:SHOW_SHARING",
        "Whether workspaces may be shared",
    ),
    "organizations show": ("people.organizations:SHOW", "Show an organization"),
    "ping": ("network.ping:PING", "Ping a workspace"),
    "port-forward": ("network.port_forward:PORT_FORWARD", "Forward ports from a workspace to the local machine"),
    "prebuilds pause": ("server.deployment:PAUSE_PREBUILDS", "Make no workspaces ahead for now"),
    "prebuilds resume": ("server.deployment:RESUME_PREBUILDS", "Make workspaces ahead again"),
    "provisioner jobs cancel": ("provisioning.provisioner_jobs:CANCEL", "Cancel a provisioner job"),
    "provisioner jobs list": ("provisioning.provisioner_jobs:LIST", "List provisioner jobs"),
    "provisioner jobs why": ("provisioning.provisioner_jobs:WHY", "Explain why a job waits and when it should start"),
    "provisioner keys create": ("provisioning.provisioner_keys:CREATE", "Create a new provisioner key"),
    "provisioner keys delete": ("provisioning.provisioner_keys:DELETE", "Delete a provisioner key"),
    "provisioner keys list": ("provisioning.provisioner_keys:LIST", "List provisioner keys in an organization"),
    "provisioner list": ("provisioning.provisioners:LIST", "List provisioner daemons in an organization"),
    "provisioner start": ("provisioning.provisioners:START", "Run a provisioner daemon"),
    "provisionerd start": ("provisioning.provisioners:LEGACY_START", "Run a provisioner daemon"),
    "publickey": ("people.account:PUBLICKEY", "Output your Coder public key used for Git operations"),
    "rename": ("workspaces.workspace_settings:RENAME", "Rename a workspace"),
    "reset-password": (
        "login.reset_password:RESET_PASSWORD",
        "Directly connect to the database to reset a user's password",
    ),
    "restart": ("workspaces.lifecycle:RESTART", "Restart a workspace"),
    "schedule extend": (
        "workspaces.workspace_schedule:EXTEND",
        "Extend the stop time of a currently running workspace",
    ),
    "schedule show": ("workspaces.workspace_schedule:SHOW", "Show workspace schedules"),
    "schedule start": ("workspaces.workspace_schedule:START", "Edit workspace start schedule"),
    "schedule stop": ("workspaces.workspace_schedule:STOP", "Edit workspace stop schedule"),
    "secret create": ("people.secrets:CREATE", "Create a secret"),
    "secret delete": ("people.secrets:DELETE", "Delete a secret"),
    "secret disable": ("people.secrets:DISABLE", "Keep a secret, but give it to no workspace"),
    "secret enable": ("people.secrets:ENABLE", "Give a secret to workspaces again"),
    "secret import": ("people.secrets:IMPORT", "Create the secrets of a file"),
    "secret list": ("people.secrets:LIST", "List secrets, or show one; never their values"),
    "secret update": ("people.secrets:UPDATE", "Change a secret"),
    "server": ("server.server:SERVER", "Start a Coder server"),
    "server backup": ("server.backup:BACKUP", "Write the database into one file"),
    "server create-admin-user": ("server.server_database:CREATE_ADMIN", "Create a user who may do everything"),
    "server dbcrypt decrypt": ("server.server_database:DECRYPT", "Store everything in the open again"),
    "server dbcrypt delete": ("server.server_database:FORGET", "Delete everything that is sealed"),
    "server dbcrypt rotate": ("server.server_database:ROTATE", "Seal what is secret in the database with a new key"),
    "server fix-oidc-links": ("server.server_database:FIX_LINKS", "Untie accounts from a former OpenID provider"),
    "server postgres-builtin-serve": (
        "server.server_database:BUILTIN_SERVE",
        "Run the built-in database without its server",
    ),
    "server regenerate-vapid-keypair": (
        "server.server_database:NEW_PUSH_KEYS",
        "Make new keys for browser notifications and forget all subscriptions",
    ),
    "server restore": ("server.backup:RESTORE", "Put a backup in the place of the database"),
    "server postgres-builtin-url": ("server.server_database:BUILTIN_URL", "Print the URL of the built-in database"),
    "sharing add": ("workspaces.sharing:ADD", "Share a workspace with a user or group"),
    "sharing remove": ("workspaces.sharing:REMOVE", "Take shared access to a workspace back"),
    "sharing status": ("workspaces.sharing:STATUS", "List whom a workspace is shared with"),
    "show": ("workspaces.workspaces:SHOW", "Display details of a workspace's resources and agents"),
    "speedtest": ("network.speedtest:SPEEDTEST", "Run upload and download tests from your machine to a workspace"),
    "ssh": ("network.ssh:SSH", "Start a shell into a workspace or run a command"),
    "start": ("workspaces.lifecycle:START", "Start a workspace"),
    "stat": ("agents.stat:STAT", "Show resource usage for the current workspace"),
    "stat cpu": ("agents.stat:CPU", "Show CPU usage, in cores"),
    "stat disk": ("agents.stat:DISK", "Show disk usage, in gigabytes"),
    "stat mem": ("agents.stat:MEM", "Show memory usage, in gigabytes"),
    "state pull": ("workspaces.workspace_settings:STATE_PULL", "Pull a Terraform state file from a workspace"),
    "state push": ("workspaces.workspace_settings:STATE_PUSH", "Push a Terraform state file to a workspace"),
    "stop": ("workspaces.lifecycle:STOP", "Stop a workspace"),
    "support bundle": ("server.support:BUNDLE", "Write an archive that helps to find out what is wrong"),
    "task create": ("tasks.tasks:CREATE", "Create a task"),
    "task delete": ("tasks.tasks:DELETE", "Delete tasks"),
    "task list": ("tasks.tasks:LIST", "List tasks"),
    "task logs": ("tasks.tasks:LOGS", "Show what a task and its user said"),
    "task pause": ("tasks.tasks:PAUSE", "Pause a task: its workspace stops"),
    "task resume": ("tasks.tasks:RESUME", "Let a paused task go on"),
    "task send": ("tasks.tasks:SEND", "Give a task more input"),
    "task status": ("tasks.tasks:STATUS", "Show how a task is doing"),
    "templates archive": ("templates.template_settings:ARCHIVE", "Archive unused or failed template versions"),
    "templates create": (
        "templates.templates:CREATE",
        "Create a template from the current directory or as specified by flag",
    ),
    "templates delete": ("templates.templates:DELETE", "Delete templates"),
    "templates edit": ("templates.template_settings:EDIT", "Edit the metadata of a template by name"),
    "templates init": ("templates.templates:INIT", "Get started with a templated template"),
    "templates list": ("templates.templates:LIST", "List all the templates available for the organization"),
    "templates presets list": ("templates.template_versions:PRESETS", "List all presets of the specified template"),
    "templates pull": ("templates.template_settings:PULL", "Download a version of a template to a path"),
    "templates push": ("templates.templates:PUSH", "Create or update a template from the current directory"),
    "templates versions archive": ("templates.template_versions:ARCHIVE", "Archive a template version(s)"),
    "templates versions list": ("templates.template_versions:LIST", "List all the versions of the specified template"),
    "templates versions promote": ("templates.template_versions:PROMOTE", "Promote a template version to active"),
    "templates versions unarchive": ("templates.template_versions:UNARCHIVE", "Unarchive a template version(s)"),
    "terraform-provider": (
        "provisioning.terraform_provider:TERRAFORM_PROVIDER",
        "Serve the coder/coder Terraform provider, or write a mirror of it",
    ),
    "tokens create": ("people.tokens:CREATE", "Create a token"),
    "tokens list": ("people.tokens:LIST", "List tokens"),
    "tokens remove": ("people.tokens:REMOVE", "Expire or delete a token"),
    "tokens view": ("people.tokens:VIEW", "Display detailed information about a token"),
    "unfavorite": ("workspaces.workspace_settings:UNFAVORITE", "Remove a workspace from your favorites"),
    "update": ("workspaces.lifecycle:UPDATE", "Will update and start a given workspace if it is out of date"),
    "users activate": ("people.users:ACTIVATE", "Give a suspended user access again"),
    "users create": ("people.users:CREATE", "Create a new user"),
    "users delete": ("people.users:DELETE", "Delete a user by username or user_id"),
    "users edit-roles": ("people.users:EDIT_ROLES", "Edit a user's roles by username or id"),
    "users list": ("people.users:LIST", "Prints the list of users"),
    "users oidc-claims": ("people.users:OIDC_CLAIMS", "Show what the OpenID provider says of you"),
    "users show": ("people.users:SHOW", "Show a single user"),
    "users suspend": ("people.users:SUSPEND", "Suspend a user, who can then not log in"),
    "vscodessh": ("network.vscodessh:VSCODESSH", "Speak SSH to a workspace for an editor's extension"),
    "version": ("version:VERSION", "Show coder version"),
    "wireguard add": ("network.wireguard_clients:ADD", "Let a device with any WireGuard app reach your workspaces"),
    "wireguard list": ("network.wireguard_clients:LIST", "List your WireGuard clients and what they may reach"),
    "wireguard remove": ("network.wireguard_clients:REMOVE", "Cut a WireGuard client off"),
    "whoami": ("login.login:WHOAMI", "Fetch authenticated user info for Coder deployment"),
    "workspace-proxy create": ("server.workspace_proxies:CREATE", "Create a workspace proxy"),
    "workspace-proxy delete": ("server.workspace_proxies:DELETE", "Delete a workspace proxy"),
    "workspace-proxy edit": ("server.workspace_proxies:EDIT", "Change a workspace proxy"),
    "workspace-proxy ls": ("server.workspace_proxies:LIST", "List workspace proxies"),
    "workspace-proxy regenerate-token": ("server.workspace_proxies:REGENERATE", "Give a workspace proxy a new token"),
    "workspace-proxy server": ("server.workspace_proxy_server:SERVER", "Start a workspace proxy"),
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
    "wg": "wireguard",
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
    **{
        f"organizations settings {verb} {alias}": f"organizations settings {verb} {name}"
        for verb in ("show", "set")
        for alias, name in (
            ("groupsync", "group-sync"),
            ("rolesync", "role-sync"),
            ("organizationsync", "organization-sync"),
            ("org-sync", "organization-sync"),
            ("orgsync", "organization-sync"),
            ("workspacesharing", "workspace-sharing"),
        )
    },
    "external-workspace": "external-workspaces",
    "licenses rm": "licenses delete",
    "licenses del": "licenses delete",
    "organizations roles edit": "organizations roles update",
    "prebuild": "prebuilds",
    "provisioner keys del": "provisioner keys delete",
    "pubkey": "publickey",
    "secret remove": "secret delete",
    "secret edit": "secret update",
    "sharing share": "sharing add",
    "sharing unshare": "sharing remove",
    "sharing rm": "sharing remove",
    "templates preset": "templates presets",
    "users active": "users activate",
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
    "exp mcp": "The deployment as tools for a model",
    "exp mcp configure": "Let programs find the tools",
    "exp sync": "Scripts of a workspace wait for each other",
    "exp prompt-example": "How prompts look",
    "exp example-error": "How errors look",
    "support": "Commands for troubleshooting",
    "organizations settings": "Settings of an organization",
    "organizations settings show": "Print settings as JSON",
    "organizations settings set": "Change settings, given as JSON on standard input",
}


DAEMONS = frozenset({"agent", "provisioner start", "provisionerd start", "server", "workspace-proxy server"})
"""Commands whose errors are read later, in a log: next steps stand there too."""


WITH_ORGANIZATION = frozenset({"external-workspaces", "organizations"})
"""Groups that have --org themselves, and with them each of their commands."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line. Returns the exit code: 0, the command's own, or 1 for a failure."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] == ["sandbox-worker"]:
        return _serve_sandbox(words[1:])
    if words == ["command-server"]:
        return _serve_commands()
    _hold_standard_descriptors()
    if _completes():
        return _invoke(load("completion words"), ["--", *words])
    if words and words[0] == "--version":
        words = ["version", *words[1:]]
    if len(words) == 1 and words[0].startswith(("Username for '", "Password for '")):
        words = ["gitaskpass", *words]  # git asks: an askpass program is given nothing but the question
    try:
        return _run(words)
    except ModuleNotFoundError as error:
        from coder.cli.edition import explain_missing

        return explain_missing(error)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of our output (head, grep -q) has seen enough.
        sys.stderr.close()
        return 141


def command_name(words: Sequence[str]) -> str | None:
    """The command or group that `main` would choose."""
    return _choose(list(words))[0]


def _serve_sandbox(limits: list[str]) -> int:
    """A server starts this for what people wrote; it is no command of a person's."""
    # By name, as commands are: the slim program has no server and imports this module all the same.
    from importlib import import_module

    worker = import_module("coder.coderd.services.templates.sandbox_worker")
    cpu_seconds, memory = limits
    return int(worker.serve(int(cpu_seconds), int(memory)))


def _serve_commands() -> int:
    """The launcher starts this (build/command_client.c); it is no command of a person's."""
    from coder.base.config import process_environment

    env = process_environment()
    if "CODER_COMMAND_SERVER_SOCKET" not in env:
        return _run(["command-server"])
    from coder.cli.command_server.listener import serve

    places = {name: f"coder.cli.{place.partition(':')[0]}" for name, (place, _) in COMMANDS.items()}
    return serve(env, places, main, command_name)


def _hold_standard_descriptors() -> None:
    """A closed standard stream is one that goes nowhere: else the next file or socket gets its number."""
    import os

    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, os.O_RDWR)
            if descriptor != number:
                os.dup2(descriptor, number)
                os.close(descriptor)
            setattr(sys, name, open(number, mode, closefd=False, encoding="utf-8"))  # noqa: SIM115


def _completes() -> bool:
    """Whether a shell asks what the line may go on with: completion scripts of the original set this variable."""
    from coder.base.config import process_environment

    return "COMPLETION_MODE" in process_environment()


def _run(words: list[str]) -> int:
    name, rest = _choose(words)
    asks_help = any(word in {"-h", "--help"} for word in _before_raw(name, rest))
    if name is None or name in GROUPS or (asks_help and name not in COMMANDS):
        return _group(name or "", rest, words, asks_help)
    command = load(name)
    if asks_help:
        from coder.cli.command import help_text

        sys.stdout.write(help_text(command, children(name), other_names(name)))
        return 0
    return _invoke(command, rest, words)


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
    best: tuple[str | None, list[str]] = (None, flags + rest)
    name = ""
    while rest and not rest[0].startswith("-"):
        # Word by word, so that the alias of a group is good for everything in it.
        name = f"{name} {rest[0]}".lstrip()
        name = ALIASES.get(name, name)
        rest = rest[1:]
        if name in COMMANDS or name in GROUPS:
            best = (name, flags + rest)
        elif not children(name):
            break
        if name in GROUPS:  # `coder organizations --org x members list`: a group's flags are its commands'
            between, rest = _leading_flags(rest)
            flags += between
            best = (name, flags + rest)
    return best


def _leading_flags(words: list[str]) -> tuple[list[str], list[str]]:
    """(flags, the words from the first that is none). Those of all commands, and the organization's."""
    from coder.cli.command import GLOBAL_OPTIONS, ORG

    known = (*GLOBAL_OPTIONS, ORG)
    kinds = {f"--{option.flag}": option.kind for option in known}
    kinds |= {f"-{option.short}": option.kind for option in known if option.short}
    index = 0
    while index < len(words) and words[index].startswith("-") and words[index] not in {"-h", "--help"}:
        takes_value = kinds.get(words[index], "bool") != "bool"
        index += 2 if takes_value else 1
    return words[:index], words[index:]


def load(name: str):  # type: ignore[no-untyped-def]
    """The `Command` of a name in the table."""
    from importlib import import_module

    module, _, attribute = COMMANDS[name][0].partition(":")
    command = getattr(import_module(f"coder.cli.{module}"), attribute)
    if name.split(" ", 1)[0] in WITH_ORGANIZATION and all(option.flag != "org" for option in command.options):
        from dataclasses import replace

        from coder.cli.command import ORG

        return replace(command, options=(*command.options, ORG))
    return command


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


def other_names(name: str) -> list[str]:
    """Last words under which a command or group is known as well."""
    return sorted(alias.rpartition(" ")[2] for alias, target in ALIASES.items() if target == name)


def _group(name: str, rest: list[str], typed: list[str], asks_help: bool) -> int:
    from coder.cli.command import GLOBAL_OPTIONS, ORG, Command, UsageError, help_text, parse

    options = () if name else GLOBAL_OPTIONS
    summary = GROUPS.get(name, "Coder: self-hosted remote development environments.")
    command = Command(words=name, summary=summary, run=lambda _: 0, options=options, usage="[subcommand]")
    if not asks_help:
        known = (ORG,) if name.split(" ", maxsplit=1)[0] in WITH_ORGANIZATION else ()
        try:
            words = parse(Command(name, "", run=lambda _: 0, options=known), rest, {}, typed).args
        except UsageError as error:
            sys.stderr.write(f"{error.message}\n")
            return 1
        if words:
            from coder.cli.failures import unknown_subcommand

            sys.stderr.write(unknown_subcommand(name, words[0]))
            return 1
    sys.stdout.write(help_text(command, children(name), other_names(name)))
    return 0


def _invoke(command, words: list[str], typed: list[str] | None = None) -> int:  # type: ignore[no-untyped-def]
    from coder.base.config import process_environment
    from coder.base.errors import CoderError
    from coder.cli.command import UsageError, option_report, parse
    from coder.cli.failures import defect_text

    _take_termination_for_interrupt()
    verbose = False
    try:
        invocation = parse(command, words, process_environment(), typed, is_group=bool(children(command.words)))
        if invocation.globals["debug_options"]:
            sys.stdout.write(option_report(invocation))
            return 0
        verbose = invocation.globals["verbose"]
        if verbose:
            _show_requests()
        code = command.run(invocation) or 0
        _warn_of_version(invocation)
        return code
    except UsageError as error:
        sys.stderr.write(f"{error.message}\n")
        return 1
    except CoderError as error:
        _tell(command, [_text(command, error)])
        return 1
    except BaseExceptionGroup as group:
        return _explain_group(command, group, verbose)
    except (BrokenPipeError, ModuleNotFoundError):
        raise  # `main` knows what they mean
    except Exception as error:
        _tell(command, [defect_text(error, verbose=verbose)])
        return 1


def _show_requests() -> None:
    """Each request on stderr, for `--verbose`."""
    from coder.net.request_log import REQUESTS

    REQUESTS.listener = lambda exchange: print(exchange, file=sys.stderr)


def _warn_of_version(invocation) -> None:  # type: ignore[no-untyped-def]
    log = sys.modules.get("coder.net.request_log")
    if log is None or not log.REQUESTS.server_version or invocation.globals["no_version_warning"]:
        return
    from coder.base.version import BUILD_VERSION
    from coder.cli.failures import version_warning

    sys.stderr.write(version_warning(BUILD_VERSION, log.REQUESTS.server_version))


def _tell(command, texts: list[str]) -> None:  # type: ignore[no-untyped-def]
    shown = f"coder {command.words}"
    sys.stderr.write(f'Encountered an error running "{shown}", see "{shown} --help" for more information\n')
    for text in texts:
        sys.stderr.write(f"{_label()} {text}\n")


def _label() -> str:
    if not sys.stderr.isatty():
        return "error:"
    from coder.cli.colour import paint

    return paint("error:", "red", sys.stderr)


def _text(command, error) -> str:  # type: ignore[no-untyped-def]
    from coder.cli.failures import error_text

    return error_text(error, is_terminal=sys.stderr.isatty() or command.words in DAEMONS)


def _take_termination_for_interrupt() -> None:
    """SIGTERM ends a command as Ctrl-C does: connections closed, terminal restored. Daemons listen for themselves."""
    import signal
    import threading

    on_main_thread = threading.current_thread() is threading.main_thread()
    if on_main_thread and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGTERM, lambda _number, _frame: signal.raise_signal(signal.SIGINT))


def _explain_group(command, group: BaseExceptionGroup, verbose: bool) -> int:  # type: ignore[no-untyped-def]
    """A nursery wraps what happened: what is known of it is told; Ctrl-C is Ctrl-C."""
    from coder.base.errors import CoderError
    from coder.cli.failures import defect_text

    inner = _flatten(group)
    if any(isinstance(error, KeyboardInterrupt) for error in inner):
        return 130
    if all(isinstance(error, BrokenPipeError) for error in inner):
        raise inner[0]
    known = [error for error in inner if isinstance(error, CoderError)]
    others = [error for error in inner if isinstance(error, Exception) and error not in known]
    if len(known) + len(others) != len(inner):
        raise group
    texts = [_text(command, error) for error in known] or [defect_text(error, verbose=verbose) for error in others]
    _tell(command, texts)
    return 1


def _flatten(group: BaseExceptionGroup) -> list[BaseException]:
    found: list[BaseException] = []
    for error in group.exceptions:
        found += _flatten(error) if isinstance(error, BaseExceptionGroup) else [error]
    return found
