"""`coder completion`: shell scripts that complete commands, flags and choices, and the words they offer.

The scripts know nothing themselves: they ask `coder completion words -- <line so far>`, so they never go out of date.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from coder.base.config import Option
from coder.base.errors import CoderError
from coder.base.whole_file import write_whole
from coder.cli.command import GLOBAL_OPTIONS, Command, Invocation
from coder.cli.output import say

if TYPE_CHECKING:
    from coder.net.blocking import BlockingClient

SHELLS = ("bash", "fish", "zsh", "powershell")

_BASH = """_coder_complete() {
    local IFS=$'\\n'
    COMPREPLY=( $("${COMP_WORDS[0]}" completion words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null) )
}
complete -o default -F _coder_complete coder
"""
_ZSH = """#compdef coder
_coder_complete() {
    local -a found
    found=("${(@f)$("${words[1]}" completion words -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    compadd -- $found
}
compdef _coder_complete coder
"""
_FISH = """function __coder_complete
    set -l line (commandline -opc) (commandline -ct)
    coder completion words -- $line[2..-1] 2>/dev/null
end
complete -c coder -f -a '(__coder_complete)'
"""
_POWERSHELL = """Register-ArgumentCompleter -Native -CommandName coder -ScriptBlock {
    param($word, $ast, $position)
    $line = @($ast.CommandElements | Select-Object -Skip 1 | ForEach-Object { "$_" })
    if ($word -eq '') { $line += '' }
    coder completion words -- @line 2>$null | ForEach-Object {
        [System.Management.Automation.CompletionResult]::new($_)
    }
}
"""
SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH, "powershell": _POWERSHELL}
_BEGIN, _END = "# ------------START-CODER-COMPLETION-----------", "# ------------END-CODER-COMPLETION------------"


def _completion(invocation: Invocation) -> int:
    shell = invocation["shell"] or _current_shell(invocation)
    if invocation["print"]:
        sys.stdout.write(SCRIPTS[shell])
        return 0
    target = _install(shell)
    say(f"Completion for {shell} is in {target}. Open a new shell to use it.")
    return 0


def _current_shell(invocation: Invocation) -> str:
    name = Path(invocation.env.get("SHELL", "powershell" if os.name == "nt" else "")).name
    if name not in SHELLS:
        raise CoderError("shell", "the shell is not known", f"Choose one with --shell: {', '.join(SHELLS)}.")
    return name


def _install(shell: str) -> Path:
    """Writes the script where the shell looks; a second time replaces the first."""
    home = Path.home()
    if shell == "fish":
        target = home / ".config" / "fish" / "completions" / "coder.fish"
        target.parent.mkdir(parents=True, exist_ok=True)
        write_whole(target, SCRIPTS[shell], mode=0o644)
        return target
    if shell == "powershell":
        raise CoderError("shell", "the profile is PowerShell's to name", "Add the output of --print to $PROFILE.")
    target = home / f".{shell}rc"
    before = target.read_text() if target.exists() else ""
    if _BEGIN in before and _END in before:
        head, _, rest = before.partition(_BEGIN)
        before = head + rest.partition(_END)[2].lstrip("\n")
    script = SCRIPTS[shell] if shell == "bash" else f"autoload -U compinit && compinit\n{SCRIPTS[shell]}"
    # Somebody's own file, often a link into a repository of theirs: its mode stays, and no half of it is ever there.
    real = target.resolve()
    mode = real.stat().st_mode & 0o777 if real.exists() else 0o644
    write_whole(real, f"{before.rstrip()}\n{_BEGIN}\n{script}{_END}\n".lstrip("\n"), mode=mode)
    return target


def _words(invocation: Invocation) -> int:
    sys.stdout.write("".join(f"{word}\n" for word in complete(invocation.args or [""])))
    return 0


def complete(line: list[str]) -> list[str]:
    """What the last word of `line` (without the program) may become."""
    from coder.cli.command_table import ALIASES, COMMANDS
    from coder.cli.main import children, load

    *before, last = line
    name = ""
    for word in before:
        longer = f"{name} {word}".lstrip()
        longer = ALIASES.get(longer, longer)
        if longer not in COMMANDS and not children(longer):
            break
        name = longer
    options = list(load(name).options) if name in COMMANDS else []
    options = [option for option in (*options, *GLOBAL_OPTIONS) if option.flag and not option.hidden]
    pending = next((one for one in options if before and before[-1] in {f"--{one.flag}", f"-{one.short}"}), None)
    if pending is not None and pending.choices:
        offered = list(pending.choices)
    elif last.startswith("-"):
        offered = sorted(f"--{option.flag}" for option in options)
    else:
        given = [word for word in before[len(name.split()) :] if not word.startswith("-")]
        offered = [word for word, _ in children(name)] or named_things(_kind(name, len(given)))
    if pending is not None and not pending.choices:
        offered = named_things(_KIND_OF_FLAG.get(pending.flag, ""), before)
    return [word for word in offered if word.startswith(last)]


_KIND_OF_FLAG = {"template": "templates", "org": "organizations", "user": "users", "tcp": "ports"}
_KIND_OF_USAGE = {"<workspace>": "workspaces", "<template>": "templates", "[template]": "templates",
                  "<username|user_id>": "users"}  # fmt: skip
"""What the first argument of a command names, by the word its usage begins with."""


def _kind(name: str, place: int) -> str:
    from coder.cli.command_table import COMMANDS
    from coder.cli.main import load

    if place or name not in COMMANDS:
        return ""
    return _KIND_OF_USAGE.get(load(name).usage.split(" ")[0], "")


def named_things(kind: str, before: Sequence[str] = ()) -> list[str]:
    """Names that the deployment knows; none when it cannot be asked, for a TAB must not fail."""
    from coder.net.errors import NetError

    try:
        client = _session_client()
        if kind == "ports":
            return _ports(client, before)
        return sorted(_names(client, kind))
    except (CoderError, NetError, ValueError):  # what is no such answer is a ValueError of msgspec
        return []


def _names(client: BlockingClient, kind: str) -> list[str]:
    from coder.api.base.names import Named, NamedUsers, NamedWorkspaces
    from coder.client.answers import read

    match kind:
        case "workspaces":
            own = read(client.request("GET", "/api/v2/workspaces?q=owner%3Ame"), NamedWorkspaces)
            return [one.name for one in own.workspaces]
        case "users":
            return [one.username for one in read(client.request("GET", "/api/v2/users"), NamedUsers).users]
        case "templates":
            return [one.name for one in read(client.request("GET", "/api/v2/templates"), list[Named])]
        case "organizations":
            return [one.name for one in read(client.request("GET", "/api/v2/users/me/organizations"), list[Named])]
    return []


def _ports(client: BlockingClient, before: Sequence[str]) -> list[str]:
    """Those that programs of the workspace listen on."""
    from coder.api.agents.agent_ports import WorkspaceAgentListeningPortsResponse
    from coder.cli.workspaces.workspaces import find_workspace
    from coder.client.answers import read

    names = [word for word in before[1:] if not word.startswith("-")]
    if not names:
        return []
    agents = [agent for one in find_workspace(client, names[0]).latest_build.resources for agent in one.agents or ()]
    if not agents:
        return []
    answer = client.request("GET", f"/api/v2/workspaceagents/{agents[0].id}/listening-ports")
    return [str(one.port) for one in read(answer, WorkspaceAgentListeningPortsResponse).ports]


def _session_client() -> BlockingClient:
    from coder.base.config import process_environment
    from coder.cli import session
    from coder.cli.command import parse

    return session.client(parse(WORDS, [], process_environment()))


COMPLETION = Command(
    words="completion",
    summary="Install or update shell completion scripts for the detected or chosen shell.",
    run=_completion,
    max_args=0,
    options=(
        Option(
            "shell",
            "shell",
            short="s",
            choices=SHELLS,
            help="Shell to complete in; the one this command is started from if left out.",
        ),
        Option(
            "print",
            "print",
            kind="bool",
            default=False,
            short="p",
            help="Print the completion script instead of writing it to the shell's own file.",
        ),
    ),
)
WORDS = Command(
    words="completion words",
    summary="What a command line may go on with",
    usage="-- [word...]",
    run=_words,
    raw_after=0,
)
