"""The product's version, in Go-semver form where the wire asks for it.

`__version__` is what Python packaging sees. `BUILD_VERSION` is what `buildinfo`, `coder version` and every
`X-Coder-Build-Version` header say: clients built for upstream switch features on by its semver, so it must never
fall below the release whose API we speak.
"""

__version__ = "2.34.0"

BUILD_VERSION = "v2.34.0"
"""Semver with a leading v; equal in `GET /buildinfo` and `coder version -o json`."""

AGENT_API_VERSION = "2.11"
"""Newest agent and tailnet RPC minor this server serves (older minors are accepted)."""

PROVISIONER_API_VERSION = "1.18"
"""Newest provisioner daemon RPC minor."""
