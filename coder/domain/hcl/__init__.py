"""HashiCorp's configuration language, read without Terraform.

`lexer` and `parser` turn a file into blocks, attributes and expressions with positions; what a template's blocks mean
is the business of their readers. Obeys the HCL native syntax specification.
"""
