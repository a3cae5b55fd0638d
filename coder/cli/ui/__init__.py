"""What commands show: help, tables, prompts, progress."""
