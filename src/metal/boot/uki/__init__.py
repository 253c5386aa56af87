"""Unified kernel images (UKI) and ISO images that are composed while they are sent, and their Secure Boot signatures.

A UKI is an EFI program of systemd-boot's stub, a kernel, an initramfs and a command line (UAPI Group specification
"Unified Kernel Image"). All of these but the command line are the same for every machine that boots an image, and they
are in the image cache already. So nothing is stored: a `layout` lists bytes and parts of cached files, its size is known
before the first byte is read, and any range of it can be sent.

- `image` makes the UKI. The command line is its last section and has a fixed size.
- `pe` adds sections and signatures to EFI programs. pefile does it, as in systemd's ukify. objcopy needs a binary of its
  own for arm64 and writes a file of the whole size; ukify is not in Debian 12 and writes a file as well.
- `authenticode` signs with the site's key: a UKI for Secure Boot, and iPXE's EFI program. What precedes the command line
  is hashed once for all machines, so that a signature costs milliseconds. sbsign reads and writes the whole file for
  each command line (0.7 s for 80 MB), signify only verifies, and cryptography's PKCS #7 cannot carry a PE's digest; its
  ASN.1 module encodes the structures here.
- `fat` and `iso` put an EFI program on a medium for virtual media. Their headers depend on its size alone. pycdlib takes
  0.6 s of processor time for such a header and writes the time of day into it, xorriso and mtools write files.

May import `metal.boot.errors` only. Start reading in `layout`, then `image`.
"""
