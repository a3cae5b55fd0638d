"""Next steps in messages: near misses of misspelt words, and what answers a question in a script."""
