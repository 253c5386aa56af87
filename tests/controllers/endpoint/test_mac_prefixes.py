"""The MAC prefix file: what is read, what is refused, and the error messages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metal.controllers.endpoint.mac_prefixes import Credential, Prefix, PrefixError, Prefixes, normalise, parse

LOGIN = "defaultCredentials: [{username: admin, password: secret-1}]"


def entry(prefix: str, *more: str) -> str:
    return "\n    ".join([f"  - macPrefix: {prefix}", LOGIN, *more])


def file(*entries: str) -> str:
    return "\n".join(["macPrefixes:", *entries])


def refusal(text: str) -> str:
    with pytest.raises(PrefixError) as caught:
        parse(text, "db.yaml")
    return str(caught.value)


def test_a_whole_entry_is_read() -> None:
    """Every field is read; enums are normalized regardless of case."""
    text = file(
        entry(
            '"A0-B1-C2"', "manufacturer: Dell Inc.", "protocol: redfish", "protocolScheme: HTTPS", "port: 8443",
            "type: BMC", "console: {type: sshlenovo, port: 2200}", "insecureSkipVerify: true",
        )
    )  # fmt: skip
    found = parse(text).lookup("a0:b1:c2:00:00:01")
    assert found is not None
    assert (found.digits, found.line, found.manufacturer) == ("a0b1c2", 2, "Dell Inc.")
    assert (found.protocol, found.scheme, found.port) == ("Redfish", "https", 8443)
    assert found.is_bmc
    assert found.console is not None
    assert (found.console.type, found.console.port) == ("SSHLenovo", 2200)
    assert found.insecure_skip_verify
    assert found.credentials == (Credential("admin", "secret-1"),)


@pytest.mark.parametrize("scheme", ["", "protocolScheme: https", "protocolScheme: http"])
def test_defaults_are_verified_redfish_on_the_port_of_the_scheme(scheme: str) -> None:
    """The defaults are type bmc, Redfish, port 443 (80 for http), verified certificates and no console."""
    found = parse(file(entry("a0", *([scheme] if scheme else [])))).lookup("a0:00:00:00:00:00")
    assert found is not None
    assert (found.type, found.protocol) == ("bmc", "Redfish")
    assert found.port == (80 if scheme.endswith("http") else 443)
    assert not found.insecure_skip_verify
    assert found.console is None


@pytest.mark.parametrize(
    ("written", "digits"),
    [("23", "23"), ("12:34:56", "123456"), ("010203", "010203"), ("1e5", "1e5"), ("0x", None), ("60:00", "6000")],
)
def test_unquoted_prefixes_are_taken_as_written(written: str, digits: str | None) -> None:
    """YAML 1.1 would read numbers, octals, exponents and base 60; the file means digits of a MAC address."""
    if digits is None:
        assert "is not 1 to 12 hexadecimal digits" in refusal(file(entry(written)))
    else:
        mac = digits.ljust(12, "0")
        assert parse(file(entry(written))).lookup(mac) is not None


def test_an_unquoted_password_is_taken_as_written() -> None:
    """0123 stays four characters, and no stays a word."""
    text = file('  - {macPrefix: "23", defaultCredentials: [{username: no, password: 0123}]}')
    found = parse(text).lookup("23:00:00:00:00:00")
    assert found is not None
    assert found.credentials == (Credential("no", "0123"),)


@pytest.mark.behaviour("Endpoint", "The longest matching MAC prefix wins, in any order of the entries.")
def test_the_longest_prefix_wins() -> None:
    """The order of the entries does not matter."""
    prefixes = parse(file(entry('"a0:b1:c2"'), entry('"a0"'), entry('"a0:b1:c2:d"')))
    assert [_digits(prefixes, mac) for mac in ("a0:b1:c2:d0:00:00", "a0b1c2000000", "a0:00:00:00:00:00")] == [
        "a0b1c2d", "a0b1c2", "a0",
    ]  # fmt: skip
    assert prefixes.lookup("b0:00:00:00:00:00") is None
    assert prefixes.lookup("") is None


def _digits(prefixes: Prefixes, mac: str) -> str | None:
    found = prefixes.lookup(mac)
    return found.digits if found else None


@given(st.lists(st.text("0123456789abcdef", min_size=1, max_size=12), unique=True, max_size=8), st.data())
def test_lookup_is_the_longest_matching_prefix(digits: list[str], data: st.DataObject) -> None:
    """It equals a linear search, for any set of prefixes and any spelling of the address."""
    mac = data.draw(st.text("0123456789abcdef", min_size=12, max_size=12))
    prefixes = Prefixes(Prefix(digits=d, line=1, type="bmc") for d in digits)
    pairs = [mac[i : i + 2] for i in range(0, 12, 2)]
    spelling = data.draw(st.sampled_from([mac, ":".join(pairs), "-".join(pairs).upper()]))
    expected = max((d for d in digits if mac.startswith(d)), key=len, default=None)
    assert _digits(prefixes, spelling) == expected


@pytest.mark.parametrize("spelling", ["00:1A:2b:3C:4d:5E", "00-1a-2b-3c-4d-5e", "001A2B3C4D5E", " 001a.2b3c.4d5e "])
def test_spellings_of_an_address_are_one(spelling: str) -> None:
    """Colons, hyphens, dots and case make no difference."""
    assert normalise(spelling) == "001a2b3c4d5e"


@pytest.mark.behaviour(
    "Endpoint", "A MAC prefix file with a mistake, such as a prefix without credentials, is refused with line and fix."
)
@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (file(entry("23"), entry('"2:3"')), "lines 2 and 4 both have the prefix 23: remove one of them"),
        (file(entry("zz")), "db.yaml line 2: macPrefix 'zz' is not 1 to 12 hexadecimal digits"),
        (file("  - macPrefix: 23"), "db.yaml line 2: defaultCredentials is missing"),
        (file(entry("23", "port: 99999")), "db.yaml line 4: port is '99999': write a number from 1 to 65535"),
        (file(entry("23", "port: https")), "db.yaml line 4: port is 'https'"),
        (file(entry("23", "protocol: IPMI")), "line 4: protocol is 'IPMI': use one of Redfish"),
        (file(entry("23", "protocolScheme: ftp")), "line 4: protocolScheme is 'ftp': use one of http, https"),
        (file(entry("23", "console: {type: telnet}")), "line 4: type is 'telnet': use one of IPMI, SSH, SSHLenovo"),
        (file(entry("23", "prot: 1")), "line 4: prot is unknown"),
        (file(entry("23", "macPrefix: 24")), "lines 2 and 4 both say macPrefix"),
        (file(entry("23", "insecureSkipVerify: 1")), "line 4: insecureSkipVerify is '1': use one of true, false"),
        (file("  - macPrefix: [23]"), "line 2: macPrefix must be a single value"),
        (file("  - macPrefix:"), "line 2: macPrefix is missing or empty"),
        (file("  - 23"), "line 2: each entry of macPrefixes must be a mapping"),
        (file("  - {? [a] : b}"), "line 2: a key of each entry of macPrefixes is not a plain word"),
        ("macPrefixes: 7", "line 1: macPrefixes must be a list"),
        ("[]", "line 1: the file must be a mapping"),
        ("prefixes: []", "line 1: prefixes is unknown: use macPrefixes"),
        ("macPrefixes: [", "db.yaml line 1: not YAML"),
        ("a: b\n\tc: d", "db.yaml line 2: not YAML"),
        ("a\0b", "db.yaml: not YAML: unreadable"),
    ],
)
def test_a_bad_file_is_refused_with_line_and_fix(text: str, sentence: str) -> None:
    """Each error names the file, the line and the correction."""
    assert sentence in refusal(text)


def test_all_problems_are_told_at_once() -> None:
    """One start of the manager shows all invalid entries."""
    with pytest.raises(PrefixError) as caught:
        parse(file(entry("zz"), entry("23", "port: 0"), entry("24"), entry('"2-4"')))
    assert len(caught.value.problems) == 3


@pytest.mark.parametrize("text", ["", "# nothing\n", "macPrefixes:\n", "macPrefixes: []\n"])
def test_an_empty_file_knows_no_bmc(text: str) -> None:
    """Nothing is found, and there is no error."""
    assert len(parse(text)) == 0


def test_other_types_are_known_but_no_bmcs() -> None:
    """An entry of another type needs no credentials, and overrides a shorter prefix of BMCs."""
    found = parse(file(entry("23"), "  - {macPrefix: 2311, type: switch}")).lookup("23:11:00:00:00:00")
    assert found is not None
    assert not found.is_bmc


@pytest.mark.parametrize("wrong", ["port: x", "password: [secret-2]"])
def test_no_password_is_ever_shown(wrong: str) -> None:
    """Neither repr nor an error contains a user name or password."""
    prefixes = parse(file(entry("23")))
    shown = repr(prefixes) + repr(prefixes.lookup("230000000000"))
    shown += refusal(file("  - macPrefix: 23\n    defaultCredentials:\n    - username: admin\n      " + wrong))
    assert "secret" not in shown
    assert "admin" not in shown
