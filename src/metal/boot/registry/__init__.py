"""How registries are accessed: credentials, tokens, authorities, mirrors, limits and signatures.

`metal.boot.registry_client` sends the requests and is the only user. `settings` has the options, `places` decides where
an image is read, `credentials` and `authorization` with what, and `signatures` checks who signed it. Imports the base
of metal.boot only.
"""
