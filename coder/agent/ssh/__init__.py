"""SSH server of the agent (asyncssh on an overlay stream); the only part of the agent that uses asyncio.

There is no SSH authentication: reaching the agent's overlay address is the authorization.
"""
