"""What differs between operating systems for the agent: users, processes, terminals, files.

`system` is the module of this system. `posix` and `windows` have the same names with the same parameters; no other
module of the agent asks which system it runs on.
"""

import sys

if sys.platform == "win32":
    from coder.agent.platform import windows as system
else:
    from coder.agent.platform import posix as system

__all__ = ["system"]
