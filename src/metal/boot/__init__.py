"""The boot core: from an image reference and a server identity to the bytes that a machine downloads.

Knows no Kubernetes types and imports nothing else of the project. `images` resolves a reference with
`registry_client` (credentials, mirrors and signatures are in `registry`) and downloads it into `cache`; `plan` and
`script` turn it into an iPXE script; `ignition` validates and extends Ignition configs. `dhcp` writes configurations of
DHCP servers with which machines find all this. Start with `images` and `plan`.
"""
