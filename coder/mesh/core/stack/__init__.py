"""The user-space network stack. interface.py is its front: packets in, packets out, sockets in between."""
