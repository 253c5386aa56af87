"""Bootable images for simulated machines, with true digests and without real content.

`registry` serves them over HTTP as an OCI registry, and `local` gives them to the boot server without sockets. May
import `metal.boot`.
Start reading in `registry`.
"""
