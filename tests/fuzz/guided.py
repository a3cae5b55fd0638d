"""Coverage-guided fuzzing of one parser: `python -m tests.fuzz.guided NAME CORPUS [libFuzzer options]`.

Needs atheris, which is no dependency: it exists for few platforms, and its wheel is large. `scripts/test --soak`
installs it where possible; test_coverage_guided.py runs this for every parser. A crash leaves its input behind.
"""

from __future__ import annotations

import sys
from pathlib import Path

import atheris  # type: ignore[import-untyped]


def main() -> None:
    name, corpus, *options = sys.argv[1:]
    with atheris.instrument_imports(include=["coder"]):
        from tests.kit.harnesses import HARNESSES

        harness = HARNESSES[name]
        # Modules that a harness loads at its first call need instrumentation as well.
        for index, seed in enumerate(harness.seeds):
            Path(corpus, f"seed{index}").write_bytes(seed)
            feed(harness, seed)

    def run_input(data: bytes) -> None:
        feed(harness, data)

    atheris.Setup([sys.argv[0], corpus, *options], run_input)
    atheris.Fuzz()


def feed(harness, data: bytes) -> None:  # type: ignore[no-untyped-def]
    try:
        harness.call(data)
    except harness.errors:
        pass


if __name__ == "__main__":
    main()
