"""Command server: a warm process of one user with every command loaded, which forks to run the launcher's requests.

The launcher's side is build/command_client.c; reasons and design: docs/decisions/command-server.md.
"""
