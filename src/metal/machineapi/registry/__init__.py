"""The registry: accepts inventories, boot states and sanitization reports from metalprobe.

`service` implements the endpoints; a report is accepted only with the report token of the boot. `message` and `limits`
parse a request within bounds. `routes` maps paths to them.
May import `metal.evidence`, `metal.machine`, `metal.api`, `metal.kube` and `metal.machineapi.http`. Start reading in
`service`.
"""
