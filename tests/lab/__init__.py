"""The chain on real machines: namespaces, a foreign BMC, a DHCP server, a registry, a VM. `make lab`, as root."""
