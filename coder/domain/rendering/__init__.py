"""A template's parameters, presets and tags, rendered without Terraform.

What a form shows must follow every key press, so the template's expressions are evaluated here: `sources` reads files,
`world` gives names their meaning, `parameters`, `presets`, `tags` and `builds` say what comes out. Everything is pure:
a template is a mapping of paths to bytes. Behaviour as recorded in tests/data/terraform/parameters.
"""
