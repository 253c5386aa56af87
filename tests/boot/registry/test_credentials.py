"""Docker config JSON: which entry applies, and that nothing shows a password."""

import base64
import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metal.boot.registry.credentials import AuthFile, Credential, Credentials, parse_auths


def auth(pair: str) -> dict[str, str]:
    return {"auth": base64.b64encode(pair.encode()).decode()}


def parsed(auths: Any) -> dict[str, Credential]:
    return dict(parse_auths(json.dumps({"auths": auths}).encode(), "file f"))


class Fixed:
    """A source with fixed content."""

    def __init__(self, auths: Any, problem: str = "") -> None:
        self._auths, self.problem = parsed(auths), problem

    async def auths(self, *, rejected: bool = False) -> dict[str, Credential]:
        return self._auths


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("registry.example", "registry.example/os"),
        ("Registry.example:5000", "registry.example:5000/os"),
        ("https://registry.example", "registry.example/os"),
        ("https://registry.example/v2/", "registry.example/os"),
        ("registry.example/v1/", "registry.example/os"),
        ("https://index.docker.io/v1/", "docker.io/library/os"),
        ("index.docker.io", "docker.io/team/os"),
        ("registry.example/team", "registry.example/team/os"),
        ("registry.example/team/os/", "registry.example/team/os"),
    ],
)
async def test_a_key_applies_to_what_it_begins(key: str, name: str) -> None:
    """A registry, or the first parts of a repository; a key with a scheme is the registry, as docker login does."""
    found = await Credentials([Fixed({key: auth("u:p")})]).of(name)
    assert found is not None
    assert (found.entry, found.user, found.password) == (key, "u", "p")


@pytest.mark.parametrize("key", ["registry.example/tea", "registry.example/team/os/x", "example", "registry.example:5"])
async def test_a_key_applies_to_whole_parts_only(key: str) -> None:
    """registry.example/tea does not apply to registry.example/team."""
    assert await Credentials([Fixed({key: auth("u:p")})]).of("registry.example/team/os") is None


async def test_the_longest_key_applies_over_all_sources_and_then_the_first_source() -> None:
    """The file is the first source."""
    one, two = Fixed({"r.example": auth("one:1")}), Fixed({"r.example": auth("two:2"), "r.example/a": auth("a:3")})
    both = Credentials([one, two])
    found = [await both.of("r.example/b"), await both.of("r.example/a/b")]
    assert [credential and credential.user for credential in found] == ["one", "a"]


@pytest.mark.parametrize("key", ["https://robot:hidden@r.example/v2/", "robot:hidden@r.example"])
def test_a_password_in_a_key_is_not_shown(key: str) -> None:
    """Neither in the text of the credential nor in an error."""
    (found,) = parsed({key: auth("u:p")}).items()
    assert found[0] == "r.example"
    assert "hidden" not in f"{found}"
    with pytest.raises(ValueError, match=r"r\.example") as caught:
        parsed({key: 1})
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (auth("u:p:q"), ("u", "p:q", "")),
        (auth("u:p\0\0"), ("u", "p", "")),
        ({"username": "u", "password": "p"}, ("u", "p", "")),
        (auth("u:p") | {"username": "x", "password": "y"}, ("u", "p", "")),
        (auth("<token>:") | {"identitytoken": "t"}, ("<token>", "", "t")),
    ],
)
def test_user_and_password_are_read_as_docker_does(entry: Any, expected: tuple[str, str, str]) -> None:
    """`auth` comes before username and password; a password may have a colon, and is padded with NUL."""
    (found,) = parsed({"r.example": entry}).values()
    assert (found.user, found.password, found.identity_token) == expected


@pytest.mark.parametrize("entry", [{}, {"username": "u"}, {"auth": "", "email": "x"}])
def test_an_entry_of_a_credential_store_is_no_credential(entry: Any) -> None:
    """docker login with a credential store leaves an empty entry."""
    assert parsed({"r.example": entry}) == {}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is not JSON"),
        ("[]", "has no auths"),
        ('{"r.example": {"auth": "c2VjcmV0"}}', "has no auths"),
        ('{"auths": {"r.example": "c2VjcmV0"}}', "no object under auths['r.example']"),
        ('{"auths": {"r.example": {"auth": "c2VjcmV0"}}}', "no base64 of user:password under auths['r.example'].auth"),
        ('{"auths": {"r.example": {"auth": "%secret"}}}', "no base64"),
        ('{"auths": {"r.example": {"password": ["secret"]}}}', "no text under auths['r.example'].password"),
        ('{"auths": {"r.example": {"registrytoken": "secret\\n"}}}', "no token under"),
    ],
)
def test_a_mistake_is_named_without_the_value(text: str, says: str) -> None:
    """Neither the secret nor its base64 is in the message."""
    with pytest.raises(ValueError, match=r"has no|is not") as caught:
        parse_auths(text.encode(), "file f")
    assert says in str(caught.value)
    assert "secret" not in str(caught.value)
    assert "c2VjcmV0" not in str(caught.value)


@given(
    st.recursive(
        st.none() | st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_any_json_is_read_or_refused(body: Any) -> None:
    """With ValueError, and no other exception."""
    with contextlib.suppress(ValueError):
        assert isinstance(parsed(body), dict)


def test_a_credential_shows_no_secret() -> None:
    """Its repr and its text have entry and source only."""
    (found,) = parsed(
        {"r.example": auth("robot:hidden") | {"identitytoken": "hidden2", "registrytoken": "h3"}}
    ).values()
    shown = f"{found!r} {found}"
    assert "r.example" in shown
    assert "file f" in shown
    assert all(secret not in shown for secret in ("robot", "hidden", "hidden2", "h3", found.basic))


async def test_a_file_that_is_missing_says_so(tmp_path: Path) -> None:
    """It is used as soon as it exists."""
    file = AuthFile(tmp_path / "config.json")
    both = Credentials([file])
    assert await both.of("r.example/os") is None
    assert "config.json cannot be read" in both.problem
    (tmp_path / "config.json").write_text(json.dumps({"auths": {"r.example": auth("u:p")}}))
    assert await both.of("r.example/os") is not None
    assert both.problem == ""
