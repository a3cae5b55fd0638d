"""Previews of updates: what another version of the template would change in a workspace."""
