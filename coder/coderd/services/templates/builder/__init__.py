"""The template builder: a base and modules, composed into a template that a person can read and edit."""
