"""A release: what `scripts/release` makes from built programs, each part in a module of its own."""
