"""Coverage of the public API, measured against the recorded facts. Run by `scripts/conformance`."""
