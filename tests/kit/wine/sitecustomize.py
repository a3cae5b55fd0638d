# mypy: disable-error-code="attr-defined,import-not-found"
"""Stand-in for a call that Wine 8 lacks: WSAIoctl(SIO_BSP_HANDLE_SELECT) fails with WinError 10045 there.

Wine has no layered socket providers, so the handle itself is the answer. Windows needs none of this.
"""

import os

import trio._core._io_windows as windows

NOT_SUPPORTED = 10045
_original = windows._get_underlying_socket


def _underlying_socket(sock, **options):  # type: ignore[no-untyped-def]
    try:
        return _original(sock, **options)
    except OSError as error:
        if error.winerror != NOT_SUPPORTED:
            raise
    number = sock if isinstance(sock, int) else sock.fileno() if hasattr(sock, "fileno") else sock
    return windows.Handle(windows.ffi.cast("HANDLE", number))


windows._get_underlying_socket = _underlying_socket

if os.environ.get("WINE_OLD_VERSION") and os.environ.get("CODER_SELF", "").endswith("sshd.exe"):
    # The program that was attached says an older version; a newer one that it starts has another name.
    import coder.agent.upgrade.upgrader as upgrader
    import coder.base.version as version

    version.BUILD_VERSION = upgrader.BUILD_VERSION = os.environ["WINE_OLD_VERSION"]
    upgrader.DOWNLOAD_SPREAD = 0.0

if os.environ.get("WINE_IMPORTS"):  # the module that each name gives, one a line
    import importlib
    import sys

    for _name in os.environ["WINE_IMPORTS"].split():
        sys.stdout.write(f"{importlib.import_module(_name).__file__}\n")
    sys.stdout.flush()
    os._exit(0)

try:
    import winpty
except ImportError:
    pass
else:
    _console = winpty.PTY

    def _winpty_console(columns, rows, **options):  # type: ignore[no-untyped-def]
        """Return a console of WinPTY: nothing comes out of Wine's ConPTY."""
        return _console(columns, rows, **{**options, "backend": winpty.Backend.WinPTY})

    winpty.PTY = _winpty_console
