"""Turns changes of objects into calls of reconcile functions, in the process that is the leader.

Imports `cache`, `client` and `meta`. Start with controller.py, then queue.py; runtime.py starts and stops everything,
workers.py holds controllers back, own_writes.py and predicates.py say which changes cause no pass, election.py chooses
the leader, tasks.py supervises, health.py serves the probes, events.py records Events, metrics.py counts.
"""
