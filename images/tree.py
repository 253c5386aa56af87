"""A file tree in memory, read from archives and directories, and written as a newc cpio archive without root."""

import fnmatch
import os
import re
import stat
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

EPOCH = 1735689600
"""Modification time of every file, in seconds (2025-01-01): archives must not depend on when they were made."""


@dataclass(frozen=True)
class Entry:
    """One file, folder, symbolic link or device. `data` is the content, or the target of a link."""

    mode: int
    data: bytes = b""
    uid: int = 0
    gid: int = 0
    device: tuple[int, int] = (0, 0)


Tree = dict[str, Entry]
"""Entries by path, without a leading slash."""


def folder(mode: int = 0o755) -> Entry:
    """A folder owned by root."""
    return Entry(stat.S_IFDIR | mode)


def link(target: str) -> Entry:
    """A symbolic link."""
    return Entry(stat.S_IFLNK | 0o777, target.encode())


def file(data: bytes, mode: int = 0o644) -> Entry:
    """A regular file owned by root."""
    return Entry(stat.S_IFREG | mode, data)


def lines(path: Path) -> list[str]:
    """The lines of a list file, without blank ones and comments."""
    return [line for raw in path.read_text().splitlines() if (line := raw.strip()) and not line.startswith("#")]


def matcher(patterns: Iterable[str]) -> re.Pattern[str]:
    """One expression that matches any of the shell patterns."""
    return re.compile("|".join(fnmatch.translate(pattern) for pattern in patterns) or r"(?!)")


def from_tar(path: Path, excluded: re.Pattern[str]) -> Tree:
    """Reads a root filesystem. Hard links become symbolic ones, devices are left to devtmpfs."""
    tree: Tree = {}
    with tarfile.open(path) as archive:
        for member in archive:
            name = member.name.removeprefix("./").rstrip("/")
            if name in ("", ".") or excluded.match(name) or excluded.match(name + "/"):
                continue
            entry = _from_member(archive, member)
            if entry:
                tree[name] = entry
    return tree


def _from_member(archive: tarfile.TarFile, member: tarfile.TarInfo) -> Entry | None:
    owner = (member.uid, member.gid)
    if member.isdir():
        return Entry(stat.S_IFDIR | member.mode, b"", *owner)
    if member.issym():
        return Entry(stat.S_IFLNK | 0o777, member.linkname.encode(), *owner)
    if member.islnk():
        return Entry(stat.S_IFLNK | 0o777, b"/" + member.linkname.removeprefix("./").encode(), *owner)
    content = archive.extractfile(member) if member.isreg() else None
    return Entry(stat.S_IFREG | member.mode, content.read(), *owner) if content else None


def from_folder(top: Path, prefix: str = "") -> Tree:
    """Reads a folder. Only the executable bit of a file's mode counts: checkouts differ in the rest."""
    tree: Tree = {}
    for path in sorted(top.rglob("*")):
        name = prefix + path.relative_to(top).as_posix()
        if path.is_symlink():
            tree[name] = link(os.readlink(path))
        elif path.is_dir():
            tree[name] = folder()
        else:
            tree[name] = file(path.read_bytes(), 0o755 if os.access(path, os.X_OK) else 0o644)
    return tree


def overlay(base: Tree, above: Tree) -> None:
    """Merge one tree over another; existing directories keep their mode and owner."""
    for name, entry in above.items():
        if not (stat.S_ISDIR(entry.mode) and name in base):
            base[name] = entry


def add_parents(tree: Tree) -> None:
    """Add parent directories, which the kernel does not create when it unpacks."""
    for name in list(tree):
        parent = os.path.dirname(name)
        while parent and parent not in tree:
            tree[parent] = folder()
            parent = os.path.dirname(parent)


_TRAILER = "TRAILER!!!"


def write_cpio(tree: Tree, out: BinaryIO) -> None:
    """Writes the tree as a newc archive, sorted by path: equal trees give equal bytes (cpio(5), "New ASCII format").

    Raises ValueError for a path that the format itself uses to end an archive.
    """
    if _TRAILER in tree:
        raise ValueError(f"a cpio archive cannot hold a file named {_TRAILER}: rename it")
    size = 0
    for chunk in _cpio_chunks(tree):
        out.write(chunk)
        size += len(chunk)
    out.write(b"\0" * (-size % 512))


def _cpio_chunks(tree: Tree) -> Iterator[bytes]:
    for number, name in enumerate(sorted(tree), start=1):
        entry = tree[name]
        yield _header(name, entry, number, EPOCH)
        yield entry.data
        yield b"\0" * (-len(entry.data) % 4)
    yield _header(_TRAILER, Entry(0), 0, 0)


def _header(name: str, entry: Entry, number: int, mtime: int) -> bytes:
    path = name.encode() + b"\0"
    links = 2 if stat.S_ISDIR(entry.mode) else 1
    fields = (
        number,
        entry.mode,
        entry.uid,
        entry.gid,
        links,
        mtime,
        len(entry.data),
        0,
        0,
        *entry.device,
        len(path),
        0,
    )
    header = b"070701" + b"".join(b"%08X" % field for field in fields) + path
    return header + b"\0" * (-len(header) % 4)
