"""`coder exp scaletest`: bounded load on a deployment, with what it made taken away again."""
