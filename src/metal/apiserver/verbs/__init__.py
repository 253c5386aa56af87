"""Verbs on resources: get, list, watch, create, update, patch, apply, delete.

It imports patching, schema, storage and machinery. Start reading in `writes` and `reads`; `shaping` and `decoding` are
the pure steps from a body to a stored object.
"""
