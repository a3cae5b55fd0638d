"""HashiCorp's configuration language, read without Terraform.

`lexer` and `parser` turn a file into blocks, attributes and expressions with positions; the readers of templates
interpret the blocks. Obeys the HCL native syntax specification.
"""
