"""Declarations of the commands: what help, completion and the parser need. They import no implementation."""
