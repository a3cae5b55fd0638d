"""TCP (RFC 9293). Begin with connection.py, which names the parts and who owns which variable."""
