"""The user-space network stack. interface.py is its public face: packets in, packets out, sockets in between."""
