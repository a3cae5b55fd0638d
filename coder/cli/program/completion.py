"""`coder completion`: shell completion of commands, flags and choices.

The shell scripts call `coder completion words -- <line so far>`, so they never become outdated.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from coder.base.atomic_file import read_lossless, write_atomically
from coder.base.child_env import child_env
from coder.base.config import LIST_KINDS, Option, process_environment
from coder.base.errors import CoderError
from coder.cli.core.command import Command, Invocation, children, choose, implements, load, options_of_groups
from coder.cli.core.command_table import COMMANDS
from coder.cli.core.options import GLOBAL_OPTIONS, Options
from coder.cli.core.parsing import CommandLine, parse, scan
from coder.cli.declarations.program.completion import COMPLETION, SHELLS, WORDS, CompletionOptions
from coder.cli.program.completion_names import FLAGS, argument_kind, names_of_kind
from coder.cli.ui.output import say

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


@implements(COMPLETION)
def _completion(invocation: Invocation[CompletionOptions]) -> int:
    shell = invocation.options.shell or _current_shell(invocation)
    if invocation.options.print:
        sys.stdout.write(SCRIPTS[shell])
        return 0
    target = _install(shell)
    say(f"Completion for {shell} is in {target}. Open a new shell to use it.")
    return 0


def _current_shell(invocation: Invocation[CompletionOptions]) -> str:
    name = Path(invocation.env.get("SHELL", "powershell" if os.name == "nt" else "")).name
    if name not in SHELLS:
        raise CoderError("shell", "the shell is unknown", f"Select one with --shell: {', '.join(SHELLS)}.")
    return name


def _install(shell: str) -> Path:
    """Write the script to the file the shell reads; a second call replaces the first script."""
    home = Path.home()
    if shell == "fish":
        target = home / ".config" / "fish" / "completions" / "coder.fish"
        target.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(target, SCRIPTS[shell], mode=0o644)
        return target
    target = _powershell_profile(home) if shell == "powershell" else home / f".{shell}rc"
    target.parent.mkdir(parents=True, exist_ok=True)
    before = read_lossless(target) if target.exists() else ""
    if "\0" in before:  # UTF-16, as Windows editors can save a profile: UTF-8 lines would corrupt it
        raise CoderError("shell", f"{target} is not encoded in UTF-8", "Save it in UTF-8, or use --print.")
    if _BEGIN in before and _END in before:
        head, _, rest = before.partition(_BEGIN)
        before = head + rest.partition(_END)[2].lstrip("\r\n")
    script = f"autoload -U compinit && compinit\n{SCRIPTS[shell]}" if shell == "zsh" else SCRIPTS[shell]
    # The file belongs to the user and is often a link into a repository: keep its mode and write it atomically.
    real = target.resolve()
    mode = real.stat().st_mode & 0o777 if real.exists() else 0o644
    write_atomically(real, f"{before.rstrip()}\n{_BEGIN}\n{script}{_END}\n".lstrip("\n"), mode=mode)
    return target


def _powershell_profile(home: Path) -> Path:
    """Return PowerShell's profile path: PowerShell's own answer, since the documents folder can move; else the
    default."""

    for program in ("pwsh", "powershell"):
        if executable := shutil.which(program):
            command = [executable, "-NoProfile", "-NonInteractive", "-Command", "$PROFILE"]
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True, env=child_env())
            except (OSError, ValueError, subprocess.SubprocessError):
                continue
            profile = done.stdout.strip()
            if profile and Path(profile).is_absolute():
                return Path(profile)
    folder = home / ("Documents/PowerShell" if os.name == "nt" else ".config/powershell")
    return folder / "Microsoft.PowerShell_profile.ps1"


@implements(WORDS)
def _words(invocation: Invocation[Options]) -> int:
    sys.stdout.write("".join(f"{word}\n" for word in complete(invocation.args or [""])))
    return 0


def complete(line: Sequence[str]) -> list[str]:
    """Return the completions of the last word of `line` (without the program)."""
    *before, last = joined = _joined(line)
    name, rest = choose(before)
    name = name or ""
    command = load(name) if name in COMMANDS else Command(name, "", Options, more_options=options_of_groups(name))
    scanned = scan(command, rest)
    options = [option for option in (*command.options, *GLOBAL_OPTIONS) if option.flag and not option.hidden]
    flag, equals, value = last.partition("=")
    if scanned.pending is not None:
        offered = _values(scanned.pending, last, scanned)
    elif scanned.own < len(rest) or not last.startswith("-"):
        offered = [] if scanned.args else [word for word, _ in children(name)]
        offered += _named(argument_kind(command, len(scanned.args)), scanned)
    elif equals:
        values = [text for option in options if f"--{option.flag}" == flag for text in _values(option, value, scanned)]
        # Bash splits at "=" and replaces only the text after it.
        offered = values if len(joined) < len(line) else [f"{flag}={text}" for text in values]
        last = value if len(joined) < len(line) else last
    else:
        offered = sorted(f"--{option.flag}" for option in options)
    return [word for word in offered if word.startswith(last)]


def _joined(line: Sequence[str]) -> list[str]:
    """Return the words as typed: bash splits `--flag=value` into three."""
    words: list[str] = []
    for index, word in enumerate(line):
        after = index > 1 and line[index - 1] == "=" and line[index - 2].startswith("--")
        if words and (after or (word == "=" and line[index - 1].startswith("--"))):
            words[-1] += word
        else:
            words.append(word)
    return words


def _values(option: Option, typed: str, scanned: CommandLine) -> list[str]:
    """Return the possible values of an option; for a list, of its last item."""
    offered = list(option.choices) or _named(FLAGS.get(option.flag, ""), scanned)
    head, comma, _ = typed.rpartition(",") if option.kind in LIST_KINDS else ("", "", "")
    return [f"{head}{comma}{text}" for text in offered]


def _named(kind: str, scanned: CommandLine) -> list[str]:
    if not kind:
        return []
    values = [(option, value) for option, value, _ in scanned.flags if option is not None and value is not None]
    flags = [f"--{option.flag}={value}" for option, value in values if option in GLOBAL_OPTIONS]
    try:
        names = names_of_kind(kind, parse(WORDS, flags, process_environment()), scanned.args)
    except CoderError:
        return []  # flags or variables that are invalid for any command
    return [name for name in names if _is_word(name)]


def _is_word(name: str) -> bool:
    """Return whether a name is one word of a shell. Bash inserts a completion as it is, and would run its `$(…)`."""
    return not name.startswith("-") and all(letter.isalnum() or letter in "-_./@:+,=%~" for letter in name)
