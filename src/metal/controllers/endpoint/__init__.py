"""The Endpoint controller: creates a BMC and a BMCSecret for each DHCP lease whose MAC prefix is that of a BMC.

`mac_prefixes` and `prefix_file` hold the MAC prefix database, `enrolment` finds credentials and creates the objects,
`watches` says which changes cause a pass. May import `controllers.shared` and the layers below, no other controller.
Start reading in `reconciler`.
"""
