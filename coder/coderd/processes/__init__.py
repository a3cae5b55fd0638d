"""`coder server --processes N`: a supervisor, and processes with one duty each. Above `coder/coderd/app.py`."""
