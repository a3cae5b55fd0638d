"""What the launcher sets for the bundled C library stays with our program."""

from __future__ import annotations

from coder.base.child_env import child_env


def test_child_processes_use_system_libc() -> None:
    glibc = "/cache/_internal/glibc"
    ours = {"LD_LIBRARY_PATH": f"/cache/_internal:{glibc}", "LD_LIBRARY_PATH_ORIG": glibc}
    assert child_env(base={**ours, "CODER_OWN_LIBC": "1", "A": "b"}) == {"A": "b"}
    assert child_env(base={**ours, "LD_LIBRARY_PATH_ORIG": "/theirs"}) == {"LD_LIBRARY_PATH": "/theirs"}
    assert child_env(base={"LD_LIBRARY_PATH": "/theirs"}) == {"LD_LIBRARY_PATH": "/theirs"}
