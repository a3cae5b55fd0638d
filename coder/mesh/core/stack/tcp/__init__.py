"""TCP (RFC 9293). Start with connection.py, which lists the parts and the owner of each variable."""
