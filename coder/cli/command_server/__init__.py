"""A warm process for one person: it has every command loaded, and forks one that runs what the launcher hands over.

The launcher's side is build/command_client.c; why and how: docs/decisions/command-server.md.
"""
