"""Programs for Windows and macOS, built on Linux: the agent and the command line.

A complete CPython distribution and wheels for the platform are fetched by name and checked against pinned hashes
(sources.py). The imports of our modules are followed in their sources (collect.py), native files are checked against
the platform (native.py), and the folder is packed behind a launcher (program.py).
"""
