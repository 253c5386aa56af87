"""Structural schemas, compiled: pruning, defaulting, validation and ratcheting of objects.

It imports cel and machinery. Start reading in `schema` (class Compiled); `go_types` and `go_times` check the types of
built-in kinds as the decoder of Kubernetes does.
"""
