"""Bare-metal automation: from a BMC's DHCP lease to a tenant's operating system and back."""

__version__ = "0.1.0"
