"""Builds the discovery and the demo operating system as OCI images, out of Debian packages."""
