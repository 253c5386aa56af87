"""Builds the discovery and demo operating systems as OCI images from Debian packages.

Start with `build` (what an image consists of), then `rootfs` and `tree`. `manager` builds the operator's own image.
"""
