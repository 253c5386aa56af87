"""Tables for `kubectl get`: columns of custom and built-in kinds, JSONPath, ages.

It imports machinery. Start reading in `table`.
"""
