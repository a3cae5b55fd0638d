"""The OpenAPI document of this server, read from the declarations of its routes (`http/server/declarations.py`).

`operations` lists them, `document` writes them down; there is no second list of routes and types to maintain. Loaded on
the first request for the document. Serving it: `http/server/swagger.py`.
"""
