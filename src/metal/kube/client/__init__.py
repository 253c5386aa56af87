"""Access to a Kubernetes API: the contract (`protocol.py`), its errors, and the implementation over HTTP (`http.py`).

Imports `meta` only. Start with protocol.py; `retrying.py` wraps a client for callers that have no queue to retry in.
"""
