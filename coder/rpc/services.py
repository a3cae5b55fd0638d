"""Where the calls of each service begin: its protobuf package and name, between slashes, before the call's own name.

Both sides import them: a caller's `AGENT + "GetManifest"` is what the server's table of handlers has.
"""

from __future__ import annotations

AGENT = "/coder.agent.v2.Agent/"
TAILNET = "/coder.tailnet.v2.Tailnet/"
PROVISIONER_DAEMON = "/provisionerd.ProvisionerDaemon/"
OVERLAY = "/coder.overlay.v1.Overlay/"
"Ours: how provisioner daemons join the overlay."
