"""A user-space WireGuard overlay on trio: tunnels, paths, a TCP/IP stack and relays.

The package does not know workspaces and imports nothing of the rest of this repository. Start with `node.open_node`.
"""
