"""`coder` with one more command, `probe`, which does what a test of the command server asks for.

The program behind tests/kit/programs/single_binary.py. Run as
`python -m tests.kit.programs.probe_program probe WHAT …`.
"""

from __future__ import annotations

import fcntl
import os
import signal
import struct
import sys
import termios
import time
from pathlib import Path
from types import ModuleType

from coder.base.caller import parent_pid
from coder.cli.command_server import served
from coder.cli.core import command_table
from coder.cli.core.command import Command, Invocation, implements
from coder.cli.core.ending import flush_and_count
from coder.cli.core.options import Options
from coder.cli.main import main


def _size() -> str:
    rows, columns, _, _ = struct.unpack("4H", fcntl.ioctl(0, termios.TIOCGWINSZ, bytes(8)))
    return f"{rows}x{columns}"


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _wait() -> None:
    # Not pause(): a signal that came just before it would be served only after the next one.
    while True:
        time.sleep(0.02)


def _probe(invocation: Invocation[Options]) -> int:
    what, *rest = invocation.args
    if "PROBE_MARK" in os.environ:
        with Path(os.environ["PROBE_MARK"]).open("a", encoding="utf-8") as mark:
            mark.write("cold\n" if os.getsid(0) == int(os.environ["PROBE_SID"]) else "warm\n")
    match what:
        case "exit":
            sys.stderr.write("leaving\n")
            return int(rest[0])
        case "raise":
            raise LookupError("on purpose")
        case "die":
            if int(rest[0]) != signal.SIGKILL:
                signal.signal(int(rest[0]), signal.SIG_DFL)
            os.kill(os.getpid(), int(rest[0]))
        case "place":
            mask = os.umask(0)
            os.umask(mask)
            ignored = [n for n in range(1, 32) if signal.getsignal(n) == signal.SIG_IGN]
            _say(f"{Path.cwd()} {mask:o} {ignored} {sorted(signal.pthread_sigmask(signal.SIG_BLOCK, []))}")
            _say(repr((sys.argv[1:], os.isatty(0), sys.stdout.line_buffering, sys.stdout.encoding, sys.stdout.errors)))
            kept = {k: v for k, v in os.environb.items() if k not in (b"_", b"PWD", b"OLDPWD", b"SHLVL", b"PROBE_MARK")}
            _say(repr(sorted(kept.items())))
        case "parent":
            _say(str(parent_pid()))
        case "read":
            count = 0
            while data := os.read(0, 1 << 20):
                count += len(data)
            _say(str(count))
        case "descriptor":
            with os.fdopen(int(rest[0]), "rb", closefd=False) as file:
                _say(repr(file.read()))
        case "flood":
            while True:
                sys.stdout.write("x" * 4096 + "\n")
        case "wait":
            _say("waiting")
            _wait()
        case "size":
            changed = [True]
            # Said by the loop: a handler that writes may come upon a write that is under way.
            signal.signal(signal.SIGWINCH, lambda *_: changed.append(True))
            while True:
                if changed:
                    changed.clear()
                    _say(_size())
                time.sleep(0.02)
        case "line":
            _say("ready")
            _say("got " + sys.stdin.readline().strip())
    return 0


PROBE = Command("probe", "", Options, usage="<what>", min_args=1, raw_after=1)
implements(PROBE)(_probe)
_module = ModuleType("coder.cli.declarations.probe")
_module.PROBE = PROBE  # type: ignore[attr-defined]
sys.modules["coder.cli.declarations.probe"] = _module
command_table.COMMANDS["probe"] = ("probe:PROBE", "")
if "PROBE_SERVE_ALL" in os.environ:
    served.NEVER_SERVED = frozenset()  # a server that leaves it to the launcher which commands it is asked for

if __name__ == "__main__":
    os._exit(flush_and_count(main()))  # as the binary ends
