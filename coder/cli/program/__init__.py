"""Commands about the program itself: its version and its completion."""
