"""The program that dnsmasq and Kea call for each lease."""

import shlex


def script(command: list[str]) -> str:
    """A shell script that adds its arguments to the command.

    Kea starts the program for a lease before the one for the lease before it has ended. flock makes them wait for each
    other: a release that is reported after the next lease of the address would remove it.
    """
    quoted = " ".join(map(shlex.quote, command))
    return (
        f'#!/bin/sh\n# Reports DHCP leases to the control plane; for dnsmasq and Kea.\nexec flock "$0" {quoted} "$@"\n'
    )
