"""An embedded Kubernetes API: kubectl-compatible, in one process, with objects in one SQLite file.

It serves CustomResourceDefinitions, a few built-in kinds and RBAC, knows nothing of bare metal, and imports metal.kube
and metal.listener only. Start reading in `server` (start and stop), then `backend` (every verb on every resource),
`verbs` (how each verb works) and `storage` (how objects are stored). docs/embedded-api.md is the page for users.

The layers, from the top: server; web and client; backend and openapi; gc; verbs and crd; kinds; patching and auth;
schema; cel, storage and printing; machinery.
"""
