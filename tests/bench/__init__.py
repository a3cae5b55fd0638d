"""Benchmarks: one module each with `measure(quick) -> list[Row]`, run by scripts/bench; not part of the tests."""
