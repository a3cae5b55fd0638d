"""The SSH server of the agent (asyncssh on an overlay stream); the only part of the agent that meets asyncio.

Nobody authenticates here: reaching the agent's overlay address is the authorization.
"""
