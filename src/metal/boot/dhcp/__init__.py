"""Configurations of DHCP servers with which machines boot from the boot server.

`site` has the validated values, `firmware` the table of what boots what; `dnsmasq` and `kea` write configurations from
them, `hook` the program that reports leases. Start with `firmware`.
"""
