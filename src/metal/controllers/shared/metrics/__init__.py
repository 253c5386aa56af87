"""What the controllers report to Prometheus, and the log line of each transition.

`metrics` has the series of the controllers, `transitions` counts and logs each change of a state, `boots` observes
the phases of network boots, and `fleet` counts objects by state from the caches. Imports `api`, `bmc` and `kube`.
Start reading in `metrics`.
"""
