"""The agent, which runs in a workspace. It dials out, serves SSH and ports inside the overlay, and runs scripts."""
