"""`coder doctor`: checks of the client, the agent and the server on this machine, with one next step each."""
