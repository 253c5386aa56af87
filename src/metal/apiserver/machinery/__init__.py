"""Types and rules that the whole API shares: resources, requests, records, metadata, selectors, errors.

It imports metal.kube only. Start reading in `resources` (Resource, Strategy, RequestContext), `records` (objects in the
store) and `status` (error responses).
"""
