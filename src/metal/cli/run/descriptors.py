"""The process' limit of open files."""

import resource

WANTED = 65_536
"""Descriptors for connections of machines and clients. The default of most shells and services, 1024, leaves each
listener a hundred (`metal.listener.limits.cap_by_descriptors`)."""


def raise_descriptor_limit(wanted: int = WANTED) -> None:
    """Raise the soft limit to `wanted`, or to the hard limit where that is lower. For processes, not for libraries."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    target = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < target:
        resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))
