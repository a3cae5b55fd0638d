"""Benchmarks: one module each with `measure(quick) -> list[Row]`, run by scripts/bench. Never part of the test suite."""
