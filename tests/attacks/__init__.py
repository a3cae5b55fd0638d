"""Tries to break the processes of a running server, as data, and the driver that judges each of them."""
