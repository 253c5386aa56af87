"""Built-in kinds: their schemas, defaults, validation and conversions, one module for each family.

It imports auth, printing, schema and machinery. Start reading in `builtins`; a kind is a `Resource` whose `Strategy`
differs from that of custom resources.
"""
