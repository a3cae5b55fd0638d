import base64
import hashlib
import shutil
import subprocess

import pytest

from coder.domain.agents.init_scripts import PLATFORMS, attach_command, content_digest, init_script


@pytest.mark.parametrize(("system", "arch"), PLATFORMS)
def test_every_platform_has_a_script_with_nothing_left_to_fill_in(system: str, arch: str) -> None:
    script = init_script(system.upper(), arch, "https://coder.example.com")
    assert script is not None
    suffix = ".exe" if system == "windows" else ""
    assert f"https://coder.example.com/bin/coder-{system}-{arch}{suffix}" in script
    for name in ("ACCESS_URL", "ARCH", "AUTH_TYPE"):
        assert "${" + name + "}" not in script
    if system != "windows":
        assert "'" not in script, "templates put it between single quotes"


@pytest.mark.parametrize("platform", [("linux", "mips"), ("darwin", "armv7"), ("windows", "armv7"), ("plan9", "amd64")])
def test_unknown_platforms(platform: tuple[str, str]) -> None:
    assert init_script(*platform, "https://x") is None


@pytest.mark.parametrize("system", ["linux", "darwin"])
def test_a_posix_shell_can_read_it(system: str) -> None:
    script = init_script(system, "arm64", "https://x")
    assert script is not None
    shell = shutil.which("dash") or "/bin/sh"
    subprocess.run([shell, "-n"], input=script.encode(), check=True)


def test_digest_is_the_hex_of_the_base64_text() -> None:
    text = base64.b64encode(hashlib.sha256(b"body").digest())
    assert content_digest(b"body") == "sha256:" + text.hex()


def test_commands() -> None:
    assert attach_command("https://x/", "linux", "amd64", "T") == (
        'curl -fsSL "https://x/api/v2/init-script/linux/amd64" | CODER_AGENT_TOKEN="T" sh'
    )
    assert attach_command("https://x", "windows", "arm64", "T") == (
        '$env:CODER_AGENT_TOKEN="T"; iwr -useb "https://x/api/v2/init-script/windows/arm64" | iex'
    )


def test_no_wheel_is_recommended_where_it_has_no_agent() -> None:
    for system, arch in PLATFORMS:
        script = init_script(system, arch, "https://x")
        assert script is not None
        assert ("pipx" in script) is (system != "windows")
        assert ("WSL" in script) is (system == "windows") and ("Get-Command coder" in script) is False
