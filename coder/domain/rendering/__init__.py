"""A template's parameters, presets and tags, rendered without Terraform.

A form must follow every key press, so the template's expressions are evaluated here: `sources` reads files,
`module_scope` resolves names, `parameters`, `presets`, `tags` and `builds` return the results. Everything is pure: a
template is a mapping of paths to bytes. Behaviour as recorded in tests/data/terraform/parameters.
"""
