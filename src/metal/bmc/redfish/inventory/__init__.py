"""The inventory of a system over Redfish: its processors, memory, network interfaces and drives.

`inventory` is the capability; `network` and `storage` read what is under links, and `reader` records as a sentence what
cannot be read. May import `capability` and `convert`, no other capability. Start reading in `inventory`.
"""
