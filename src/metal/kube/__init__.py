"""A small controller-runtime: clients of a Kubernetes API, informers, work queues, controllers, leader election.

It knows no kind of this project and imports nothing of it, so it could be published on its own. Layers, each of which
imports only those below: `controller` (queue, workers, election, Events, metrics), `cache` (informers), `client` (the
contract and its HTTP implementation), `meta` (objects, conditions, selectors, permissions, clocks).

Start with `client/protocol.py` (what an API offers), `cache/informer.py` (how a cache follows it) and
`controller/controller.py` (how a change becomes a reconcile); `controller/runtime.py` puts them together.
"""
