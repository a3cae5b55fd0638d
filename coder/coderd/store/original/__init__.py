"""Import of an original Coder database: what is read there, what it becomes here, and the copying itself.

`steps` maps the original's tables to ours, `left_out` has a reason for everything that is not taken. `source` reads,
`checks` counts what cannot be taken, `target` writes and records the progress.
"""
