"""Image references."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metal.boot.oci import BadReference, Reference, canonical_registry, endpoint, is_digest, parse

DIGEST = "sha256:" + "ab" * 32
_PART = st.from_regex(r"[a-z0-9]{1,6}([._-][a-z0-9]{1,6})?", fullmatch=True)
_REGISTRY = st.from_regex(
    r"[a-z][a-z0-9]{0,6}\.[a-z]{2,4}(:[1-9][0-9]{1,4})?|localhost(:[1-9][0-9]{1,4})?", fullmatch=True
)
REFERENCES = st.builds(
    Reference,
    registry=_REGISTRY.filter(lambda name: "docker.io" not in name),
    repository=st.lists(_PART, min_size=1, max_size=3).map("/".join),
    tag=st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,20}", fullmatch=True),
    digest=st.sampled_from(["", DIGEST, "sha512:" + "0f" * 64]),
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ghcr.io/a/b:1.2", Reference("ghcr.io", "a/b", "1.2")),
        ("ghcr.io/a/b", Reference("ghcr.io", "a/b", "latest")),
        ("localhost/a", Reference("localhost", "a", "latest")),
        ("10.0.0.1:5000/a:1", Reference("10.0.0.1:5000", "a", "1")),
        ("registry:5000/a", Reference("registry:5000", "a", "latest")),
        ("[fd00::1]:5000/a", Reference("[fd00::1]:5000", "a", "latest")),
        (f"ghcr.io/a@{DIGEST}", Reference("ghcr.io", "a", "", DIGEST)),
        (f"ghcr.io/a:1@{DIGEST}", Reference("ghcr.io", "a", "1", DIGEST)),
        ("debian", Reference("docker.io", "library/debian", "latest")),
        ("me/debian:12", Reference("docker.io", "me/debian", "12")),
        ("index.docker.io/debian", Reference("docker.io", "library/debian", "latest")),
        ("GHCR.io/a", Reference("ghcr.io", "a", "latest")),
    ],
)
def test_every_way_to_write_a_reference_is_understood(text: str, expected: Reference) -> None:
    """Tag, digest, both, neither; ports, IPv6, Docker Hub's short forms."""
    assert parse(text) == expected


@pytest.mark.parametrize(
    "text",
    ["", "ghcr.io/UPPER", "a b", "ghcr.io/", "ghcr.io/a:", "ghcr.io/a:-x", "a@sha256:12", "a@md5:00", "ghcr.io/a//b",
     "ghcr.io/../b", "-x.io/a", "ghcr.io/a:" + "t" * 129, "ghcr.io/" + "a" * 260, "ghcr.io/a\n", "file:///etc/passwd",
     "http://ghcr.io/a", "ghcr.io:port/a", "ghcr.io/a?x=1", "ghcr.io/a#x", "ghcr.io/a%2e", f"@{DIGEST}"],
)  # fmt: skip
def test_what_is_no_reference_is_refused_with_a_sentence(text: str) -> None:
    """The message quotes the text and says what is expected."""
    with pytest.raises(BadReference, match="image"):
        parse(text)


@given(REFERENCES)
def test_a_reference_survives_being_written_and_read(reference: Reference) -> None:
    """str() and parse() are inverse."""
    assert parse(str(reference)) == reference


@given(st.text(max_size=60))
def test_no_text_breaks_the_parser_and_none_smuggles_anything(text: str) -> None:
    """No accepted reference contains a blank, a line break or a path traversal."""
    try:
        reference = parse(text)
    except BadReference:
        return
    assert str(reference).isascii()
    assert str(reference).isprintable()
    assert " " not in str(reference)
    assert ".." not in reference.repository.split("/")


def test_pinning_keeps_the_name_only() -> None:
    """A pinned reference does not follow a tag."""
    assert str(parse("ghcr.io/a:1").pinned(DIGEST)) == f"ghcr.io/a@{DIGEST}"


def test_docker_hub_has_one_name_and_another_address() -> None:
    """Its aliases are one registry, served by registry-1."""
    assert {canonical_registry(name) for name in ("docker.io", " Index.docker.io", "registry-1.docker.io")} == {
        "docker.io"
    }
    assert endpoint("docker.io") == "registry-1.docker.io"
    assert endpoint("ghcr.io") == "ghcr.io"


def test_only_verifiable_digests_are_digests() -> None:
    """Upper case, other algorithms and other lengths are rejected."""
    assert is_digest(DIGEST)
    assert not any(map(is_digest, ("", "sha256:" + "AB" * 32, "sha256:ab", "md5:" + "0" * 32, DIGEST + "\n")))
