"""Declaration of `coder doctor`."""
