"""Containers on the agent's machine, and the dev containers among them: listed, built, each with its own agent inside.

`engine.py` queries docker or podman, `builder.py` runs the `devcontainer` command, `sub_agents.py` copies the agent's
program into a container, `table.py` holds the state. Sessions inside a container are in
`coder/agent/workspace/containers.py`.
"""
