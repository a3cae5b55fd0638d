"""Containers beside the agent, and the dev containers among them: listed, built, each with an agent of its own inside.

`engine.py` asks docker or podman, `builder.py` the `devcontainer` command, `sub_agents.py` puts our program into a
container, `table.py` knows what there is. Sessions inside a container are `coder/agent/workspace/containers.py`.
"""
