"""Coder: self-hosted remote development. Importing this package costs nothing; see ARCHITECTURE.md for the rooms."""
