"""The `version` parameter of the agent and tailnet links (rpc-framing section 2)."""

from __future__ import annotations

from coder.base.version import AGENT_API_VERSION
from coder.coderd.links.door import LinkRequest
from coder.coderd.services.errors import InvalidFields
from coder.domain.provisioners import explain_incompatible


def agent_api_version(request: LinkRequest, default: str) -> str:
    """The version the caller speaks. Raises InvalidFields as upstream words it."""
    version = request.first("version") or default
    reason = explain_incompatible(version, AGENT_API_VERSION)
    if reason is not None and version.startswith("1.") and "behind" in reason:
        reason = f"version {version} is no longer supported"
    if reason is not None:
        raise InvalidFields(("version", reason), message="Unknown or unsupported API version")
    return version
