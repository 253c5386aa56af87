"""Authentication and authorization: tokens, ServiceAccounts, RBAC, access reviews, TLS.

It imports schema, storage and machinery. Start reading in `access` (the attributes of a request), then `authorizer`
(decisions) and `service_accounts` (tokens).
"""
