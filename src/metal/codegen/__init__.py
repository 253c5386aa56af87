"""What `make generate` writes: CustomResourceDefinitions, RBAC roles and the table of options.

Each module is a program that writes files, or with `--check` fails when they are outdated. May import everything but
`metal.cli`. Start with `crd` (schemas from `metal.api`) or `rbac` (roles from declared permissions).
"""
