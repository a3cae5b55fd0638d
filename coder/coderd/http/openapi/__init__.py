"""The OpenAPI document of this server, read from the handlers themselves.

There is no second list of routes and types to keep: `sources` finds the syntax of a live function, `inference` says
of what type an expression is, `reading` follows a handler to what it takes, answers and refuses, `document` writes
that down. All of it is loaded on the first request for the document and never before. Serving it: `http/swagger.py`.
"""
