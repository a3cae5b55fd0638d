"""Ends of commands by signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

COMMAND = "import sys; from coder.cli.main import main; sys.exit(main(['login', sys.argv[1], '--token', 'x']))"


def _listen_again() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_ends_without_traceback(number: signal.Signals) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as silent:
        argv = [sys.executable, "-c", COMMAND, f"http://127.0.0.1:{silent.getsockname()[1]}"]
        env = {**os.environ, "CODER_CONFIG_DIR": "/nonexistent"}
        # A background runner ignores SIGINT, and children inherit that.
        with subprocess.Popen(argv, stderr=subprocess.PIPE, env=env, preexec_fn=_listen_again) as it:  # noqa: PLW1509
            silent.settimeout(60)
            connection, _ = silent.accept()  # it now waits for an answer
            it.send_signal(number)
            _, output = it.communicate(timeout=60)
            connection.close()
    assert it.returncode == 130
    assert b"Traceback" not in output


UNDER_NOHUP = """
import signal, subprocess
signal.signal(signal.SIGHUP, signal.SIG_IGN)
from coder.cli.agents.agent_process import _handle_inherited_ignored_signals
_handle_inherited_ignored_signals()
signal.raise_signal(signal.SIGHUP)
print(subprocess.run(["sh", "-c", "kill -HUP $$; echo still here"], stdout=subprocess.PIPE).returncode)
"""


def test_agent_under_nohup() -> None:
    done = subprocess.run([sys.executable, "-c", UNDER_NOHUP], capture_output=True, timeout=60, check=True)
    assert done.stdout.decode().strip() == str(-signal.SIGHUP)
