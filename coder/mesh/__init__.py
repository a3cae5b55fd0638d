"""A user-space WireGuard overlay on trio: tunnels, paths, a TCP/IP stack and relays.

Knows nothing of workspaces and imports nothing of the rest of this repository. The front door is `node.open_node`.
"""
