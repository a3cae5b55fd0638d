"""Entry point of `python -m coder` and of the binary."""

from coder.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
