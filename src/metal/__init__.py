"""Bare-metal automation: from a BMC's DHCP lease to a tenant's operating system and back.

Imports go downwards only. Start reading in `manager`, which assembles everything, then `controllers.server`.
"""

__version__ = "0.1.0"
