"""The BMC controller: checks each BMC at an interval, and creates a Server for each system that it manages.

A pass (`reconciler`) is a list of phases, one a module, over a `scope` that collects the status and writes it once.
`watches` says which changes cause a pass. `enrolment` is about the objects: whether a BMC is used, and its Servers.

May import `controllers.shared` and the layers below, no other controller. Start reading in `reconciler`.
"""
