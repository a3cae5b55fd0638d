"""What commands share below their output: declarations, parsing, sessions, errors."""
