"""The kinds of the API as frozen structs: what travels as JSON between the API server, controllers and clients.

The package imports nothing of ours. The docstring below a field is its description in the CRD (`kubectl explain`), and
the annotations of `markers` are its validation; `metal.codegen` generates the CRDs from both.

Start with `server` and `claim`. `kinds` lists every kind for a configurable API group; `meta` has what they share.
"""
