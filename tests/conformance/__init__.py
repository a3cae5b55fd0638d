"""How much of the public API there is, measured against the recorded facts. Run by `scripts/conformance`."""
