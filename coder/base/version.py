"""Version of the product, in Go-semver form where the protocol requires it.

Python packaging reads `__version__`. `BUILD_VERSION` appears in `buildinfo`, `coder version` and every
`X-Coder-Build-Version` header: clients built for upstream enable features by its semver, so it must never fall below
the release whose API we implement.
"""

__version__ = "2.34.0"

BUILD_VERSION = "v2.34.0"
"""Semver with a leading v; equal in `GET /buildinfo` and `coder version -o json`."""

AGENT_API_VERSION = "2.11"
"""Newest agent and tailnet RPC minor this server serves (older minors are accepted)."""

PROVISIONER_API_VERSION = "1.18"
"""Newest provisioner daemon RPC minor."""


def versions_match(first: str, second: str) -> bool:
    """Return whether two programs are of one release: the same major and minor version, or one of them a development
    build (`v0.0.0-devel+abc`), which matches every release. An unknown version ("") matches, too."""
    if not first or not second or is_development(first) or is_development(second):
        return True
    return _release(first) == _release(second)


def is_development(version: str) -> bool:
    return "-devel" in version.partition("+")[0]


def _release(version: str) -> list[str]:
    return version.removeprefix("v").partition("+")[0].partition("-")[0].split(".")[:2]
