"""Controllers inside the API: garbage collection, default ServiceAccounts and aggregated roles.

It imports verbs, crd, auth, storage and machinery. Start reading in `collector`, then `housekeeping`.
"""
