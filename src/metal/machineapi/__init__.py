"""The HTTP endpoints that machines and BMCs call: boot server, registry and event receiver.

`bootserver` serves iPXE scripts, Ignition and images; `registry` accepts the reports of metalprobe; `bmcevents` accepts
Redfish events. None of them imports another. They share `http`, which enforces limits before a request is
authenticated. May import `metal.boot`, `metal.evidence`, `metal.machine`, `metal.api`, `metal.kube` and
`metal.listener`. Start reading in `http.server`, then `bootserver.service`.
"""
