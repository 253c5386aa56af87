"""The boot server: hands an iPXE script, an Ignition config and an image to a machine whose boot window is open.

`service` implements the endpoints, `image_endpoint` serves kernel and RAM disk, `loader_endpoint` iPXE itself to
firmware that boots by HTTP, and `bootable` reads what is to be booted from the API. `routes` maps paths to them.
May import `metal.boot`, `metal.machine`, `metal.api`, `metal.kube` and `metal.machineapi.http`. Start
reading in `service`.
"""
