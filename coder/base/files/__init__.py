"""Files on every system: access by modes or by access lists."""
