"""Prefixes of each service's calls: protobuf package and service name, between slashes.

Both sides import them: a caller's `AGENT + "GetManifest"` is the key in the server's table of handlers.
"""

from __future__ import annotations

AGENT = "/coder.agent.v2.Agent/"
TAILNET = "/coder.tailnet.v2.Tailnet/"
PROVISIONER_DAEMON = "/provisionerd.ProvisionerDaemon/"
AGENT_REPORTS = "/coder.reports.v1.AgentReports/"
"Our service for agents' reports that upstream's Agent service has no call for."
OVERLAY = "/coder.overlay.v1.Overlay/"
"Our service by which provisioner daemons join the overlay, and announce that they drain."
