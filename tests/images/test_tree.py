"""Archives: what goes in comes out, in the same bytes every time."""

import io
import os
import stat
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from images.tree import Entry, Tree

from images import tree

NAMES = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=12)
PATHS = st.lists(NAMES.filter(lambda name: name not in (".", "..")), min_size=1, max_size=3).map("/".join)
ENTRIES = st.builds(
    Entry,
    mode=st.sampled_from([stat.S_IFREG | 0o644, stat.S_IFLNK | 0o777]),
    data=st.binary(max_size=40),
    uid=st.integers(0, 2**32 - 1),
    gid=st.integers(0, 2**32 - 1),
)


def read_cpio(archive: bytes) -> tuple[Tree, list[str]]:
    """Reads a newc archive as the kernel does: header, name and data each padded to four bytes."""
    found: Tree = {}
    offset = 0
    while True:
        assert archive[offset : offset + 6] == b"070701"
        numbers = [int(archive[at : at + 8], 16) for at in range(offset + 6, offset + 110, 8)]
        name = archive[offset + 110 : offset + 110 + numbers[11] - 1].decode()
        start = offset + 110 + numbers[11]
        start += -start % 4
        data = archive[start : start + numbers[6]]
        offset = start + len(data) + -len(data) % 4
        if name == "TRAILER!!!":
            assert set(archive[offset:]) <= {0}
            return found, list(found)
        found[name] = Entry(numbers[1], data, numbers[2], numbers[3], (numbers[9], numbers[10]))


def cpio(contents: Tree) -> bytes:
    """The archive of a tree."""
    out = io.BytesIO()
    tree.write_cpio(contents, out)
    return out.getvalue()


def test_the_name_that_ends_an_archive_is_refused() -> None:
    """A file of that name would cut off everything behind it."""
    with pytest.raises(ValueError, match="rename it"):
        cpio({"TRAILER!!!": Entry(stat.S_IFREG | 0o644, b"")})


@given(st.dictionaries(PATHS.filter(lambda path: path != "TRAILER!!!"), ENTRIES, max_size=8))
def test_a_tree_survives_the_archive(contents: Tree) -> None:
    """Every entry comes back, in sorted order, and the size is whole sectors."""
    archive = cpio(contents)
    found, order = read_cpio(archive)

    assert found == contents
    assert order == sorted(contents)
    assert len(archive) % 512 == 0


def test_the_order_of_a_tree_does_not_matter() -> None:
    """Equal trees give equal bytes."""
    one, two = tree.file(b"1"), tree.folder()

    assert cpio({"a": one, "b": two}) == cpio({"b": two, "a": one})


def test_devices_keep_their_numbers() -> None:
    """The kernel opens dev/console before anything is mounted."""
    console = Entry(stat.S_IFCHR | 0o600, device=(5, 1))

    assert read_cpio(cpio({"dev/console": console}))[0] == {"dev/console": console}


def make_tar(path: Path) -> None:
    """A root filesystem with one of everything."""
    with tarfile.open(path, "w") as archive:

        def add(name: str, kind: bytes, content: bytes = b"", target: str = "") -> None:
            member = tarfile.TarInfo(name)
            member.type, member.size, member.linkname, member.mode, member.uid = kind, len(content), target, 0o750, 7
            archive.addfile(member, io.BytesIO(content))

        add("./", tarfile.DIRTYPE)
        add("./etc/", tarfile.DIRTYPE)
        add("./etc/motd", tarfile.REGTYPE, b"hello")
        add("./usr/share/man/man1/x.1", tarfile.REGTYPE, b"x")
        add("./bin", tarfile.SYMTYPE, target="usr/bin")
        add("./usr/bin/twin", tarfile.LNKTYPE, target="./etc/motd")
        add("./dev/null", tarfile.CHRTYPE)


def test_a_root_filesystem_is_read_without_what_is_excluded(tmp_path: Path) -> None:
    """Owners and modes stay; a hard link becomes an absolute symbolic one; devices are left out."""
    make_tar(tmp_path / "root.tar")

    found = tree.from_tar(tmp_path / "root.tar", tree.matcher(["usr/share/man/*"]))

    assert found == {
        "etc": Entry(stat.S_IFDIR | 0o750, b"", 7),
        "etc/motd": Entry(stat.S_IFREG | 0o750, b"hello", 7),
        "bin": Entry(stat.S_IFLNK | 0o777, b"usr/bin", 7),
        "usr/bin/twin": Entry(stat.S_IFLNK | 0o777, b"/etc/motd", 7),
    }


def test_excluding_nothing_keeps_everything() -> None:
    """An empty list of patterns matches no path, not every path."""
    assert not tree.matcher([]).match("etc")


def test_a_folder_is_read_with_the_executable_bit_only(tmp_path: Path) -> None:
    """A checkout's umask does not reach the image."""
    (tmp_path / "sub").mkdir(mode=0o700)
    (tmp_path / "sub/script").write_bytes(b"#!")
    (tmp_path / "sub/script").chmod(0o700)
    (tmp_path / "note").write_bytes(b"n")
    (tmp_path / "note").chmod(0o600)
    os.symlink("/usr/bin/true", tmp_path / "sub/link")

    assert tree.from_folder(tmp_path) == {
        "sub": tree.folder(),
        "sub/script": tree.file(b"#!", 0o755),
        "sub/link": tree.link("/usr/bin/true"),
        "note": tree.file(b"n"),
    }


def test_an_overlay_replaces_files_and_keeps_folders() -> None:
    """A folder of the packages keeps the mode that they gave it."""
    base = {"root": tree.folder(0o700), "etc/motd": tree.file(b"old")}

    tree.overlay(base, {"root": tree.folder(), "etc/motd": tree.file(b"new"), "etc/x": tree.file(b"x")})

    assert base == {"root": tree.folder(0o700), "etc/motd": tree.file(b"new"), "etc/x": tree.file(b"x")}


def test_missing_parents_are_made() -> None:
    """The kernel unpacks a file into a missing folder by dropping it."""
    contents = {"a/b/c": tree.file(b""), "a": tree.folder(0o711)}

    tree.add_parents(contents)

    assert contents == {"a": tree.folder(0o711), "a/b": tree.folder(), "a/b/c": tree.file(b"")}
