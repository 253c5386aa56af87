"""Unified kernel images (UKI) and ISO images that are composed while they are sent, and signatures for Secure Boot.

A UKI is an EFI program of systemd-boot's stub, a kernel, an initramfs and a command line (UAPI Group specification
"Unified Kernel Image"). All of these but the command line are the same for every machine that boots an image, and they
are in the image cache already. So nothing is stored: a `layout` lists bytes and parts of cached files; its size is
known before the first byte is read, and any range of it can be sent.

- `image` makes the UKI. The command line is its last section and has a fixed size.
- `pe` adds sections to EFI programs. pefile writes the headers, as in systemd's ukify. ukify itself (not in Debian 12)
  and objcopy write a file of the whole size for each command line (1.4 s for 94 MB), and objcopy needs another binary
  for arm64.
- `authenticode` signs with the site's key: a UKI, and iPXE's EFI program. What precedes the command line is hashed once
  for all machines (0.14 s for 94 MB); then a signature takes 0.6 ms. sbsign reads and writes the whole file for each
  command line (0.5 s), signify only verifies, and cryptography's PKCS #7 cannot carry the digest of a PE file; its
  ASN.1 module encodes the structures here.
- `fat` and `iso` put an EFI program on a medium for virtual media. The headers depend on the program's size alone.
  pycdlib takes 0.6 s of processor time for them and writes the time of day into them; xorriso and mtools write files.

May import `metal.boot.errors` only. Start reading in `layout`, then `image`.
"""
