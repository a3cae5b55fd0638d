"""The `version` parameter of the agent and tailnet links (docs/protocol/rpc.md#endpoints)."""

from __future__ import annotations

from coder.api.base.refusals import InvalidFields
from coder.appproxy.upgrades.raw_links import UpgradeRequest
from coder.base.version import AGENT_API_VERSION
from coder.domain.provisioning.provisioners import explain_incompatible


def agent_api_version(request: UpgradeRequest, default: str) -> str:
    """Return the caller's version. Raises InvalidFields in upstream's words."""
    version = request.first("version") or default
    reason = explain_incompatible(version, AGENT_API_VERSION)
    if reason is not None and version.startswith("1.") and "behind" in reason:
        reason = f"version {version} is no longer supported"
    if reason is not None:
        raise InvalidFields(("version", reason), message="Unknown or unsupported API version")
    return version
