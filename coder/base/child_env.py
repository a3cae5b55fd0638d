"""Environment for programs we start.

PyInstaller sets LD_LIBRARY_PATH to its own folder for our process; a child (postgres, terraform, git, a user's shell)
that inherits it would load our libraries instead of its own. The original value is in LD_LIBRARY_PATH_ORIG.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

_RESTORED = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "LIBPATH")
_PRIVATE = (
    "_MEIPASS2",
    "_PYI_ARCHIVE_FILE",
    "_PYI_APPLICATION_HOME_DIR",
    "_PYI_PARENT_PROCESS_LEVEL",
    "_PYI_SPLASH_IPC",
)


def child_env(extra: Mapping[str, str] | None = None, *, base: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return a copy of `base` (default: our environment) without the bundle's variables, plus `extra`."""
    env = dict(os.environ if base is None else base)
    marks = ("CODER_OWN_LIBC", *_PRIVATE, *(f"{name}_ORIG" for name in _RESTORED))
    frozen = any(name in env for name in marks)
    # With the bundled C library the launcher set the path: there is no original value.
    own_libc = env.pop("CODER_OWN_LIBC", "")
    for name in _RESTORED:
        original = env.pop(f"{name}_ORIG", None)
        if own_libc:
            original = None
        if original is not None:
            env[name] = original
        elif frozen:
            env.pop(name, None)
    for name in _PRIVATE:
        env.pop(name, None)
    if extra:
        env.update(extra)
    return env
