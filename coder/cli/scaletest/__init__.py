"""`coder exp scaletest`: bounded load on a deployment, followed by cleanup."""
