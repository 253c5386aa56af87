"""The configuration file: valid content and error messages."""

import contextlib
import dataclasses
import inspect
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st

from metal.api.docstrings import field_docs
from metal.boot.registry.settings import RegistryServer, SigningKeys
from metal.config import Config, ConfigError, load, parse
from metal.config.check import split_listen
from metal.config.describe import documented


def test_an_empty_file_gives_the_defaults() -> None:
    """An empty file has the defaults."""
    assert parse("", "f") == Config()
    assert load(None) == Config()


def test_a_template_of_dns_records_is_read_with_the_file(tmp_path: Path) -> None:
    """An invalid or missing template is an error with file, line and fix; a valid one is used."""
    template, config = tmp_path / "dns.yaml", tmp_path / "metal.yaml"
    config.write_text(f"dnsRecordTemplate: {template}\n")
    with pytest.raises(ConfigError, match=r"metal\.yaml: dnsRecordTemplate: .*dns\.yaml: cannot be read"):
        load(config)
    template.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Nme }}\n")
    with pytest.raises(
        ConfigError, match=r"dns\.yaml line 4: \{\{ \.Nme }}: unknown field Nme: use one of Namespace, Name"
    ):
        load(config)
    template.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Name }}\n")
    found = load(config).dns_template()
    assert found is not None
    assert (found.api_version, found.kind) == ("v1", "ConfigMap")
    assert Config().dns_template() is None


def test_options_are_read_with_units() -> None:
    """Durations accept s, m and h, sizes Ki to Ti, and lists are lists."""
    text = """
apiGroup: metal.openkcm.dev
timeouts:
  discovery: 45m
  power: 90
registries:
  insecure: [reg.lab:5000]
  cacheSize: 5Gi
listen:
  boot: "[::1]:8082"
bmc:
  verify: false
"""
    config = parse(text, "f")
    assert config.api_group == "metal.openkcm.dev"
    assert config.timeouts.discovery == 2700.0
    assert config.timeouts.power == 90.0
    assert config.registries.insecure == ("reg.lab:5000",)
    assert config.registries.cache_size == 5 << 30
    assert config.boot_url == "http://[::1]:8082"
    assert config.bmc.verify is False


def test_drives_that_are_not_unique_are_listed_in_any_spelling() -> None:
    """By serial number or by model; the form is that in which drives are compared."""
    config = parse('identity:\n  nonUniqueDrives: ["AB-00 1", Cheap SSD 128G]\n', "f")
    assert config.server_settings(b"").non_unique_drives == {"ab001", "cheapssd128g"}
    assert Config().server_settings(b"").non_unique_drives == frozenset()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("listen:\n  api: here\n", "f line 2: api is 'here': write address:port"),
        ("listen:\n  port: 1\n", "f line 2: port is unknown: use api, boot, registry, events, metrics"),
        ("timeouts:\n  power: soon\n", "f line 2: power is 'soon': write seconds"),
        ("timeouts:\n  power: 0\n", "f line 2: power is '0'"),
        ("apiGroup: Metal\n", "f line 1: apiGroup is 'Metal': write a DNS name"),
        ("bmc:\n  scheme: ftp\n", "f line 2: scheme is 'ftp': write https or http"),
        ("bmc:\n  verify: maybe\n", "f line 2: verify is 'maybe'"),
        ("registries:\n  insecure: a\n", "f line 2: insecure must be a list"),
        ("registries:\n  cacheSize: lots\n", "f line 2: cacheSize is 'lots'"),
        ("advertise:\n  boot: boot.example\n", "f line 2: boot is 'boot.example': write a base URL"),
        ("identity:\n  nonUniqueDrives: [--]\n", "nonUniqueDrives has an entry without letters and digits"),
        ("namespace: A_B\n", "f line 1: namespace is 'A_B'"),
        ("bootAttempts: 0\n", "f line 1: bootAttempts is 0"),
        ("probeImage: http://x/y\n", "f line 1: probeImage is 'http://x/y': write an OCI reference"),
        ("sanitization:\n  policy: Shred\n", "f line 2: policy is 'Shred': write None, Clear or Purge"),
        (
            "sanitization:\n  firmware: ClearAll\n",
            "f line 2: firmware is 'ClearAll': write None, ClearTPM",
        ),
        ("sanitization:\n  rate: 0\n", "f line 2: rate is 0: write bytes per second"),
        ("sanitization:\n  keySecret: A_B\n", "f line 2: keySecret is 'A_B': write a DNS name"),
        ("probeImage: a b\n", "f line 1: probeImage is 'a b'"),
        ("registries:\n  insecure: ['http://foo']\n", "f line 2: insecure has 'http://foo': write host or host:port"),
        ("registries:\n  allowed: [a/b]\n", "f line 2: allowed has 'a/b'"),
        ("registries:\n  servers:\n  - caFile: x\n", "f line 3: name is missing"),
        ("registries:\n  servers: a\n", "servers must be a list"),
        ("registries:\n  servers:\n  - name: a\n    ca: x\n", "f line 4: ca is unknown: use name, caFile, mirrors"),
        ("registries:\n  servers:\n  - name: https://a\n", "name has 'https://a': write host or host:port"),
        ("registries:\n  servers:\n  - {name: a, mirrors: ['b/C']}\n", "mirrors has 'b/C': write host[:port][/prefix]"),
        ("registries:\n  servers:\n  - {name: a, tokenServices: ['b:1']}\n", "tokenServices has 'b:1': write a host"),
        ("registries:\n  servers:\n  - {name: a, maxRequests: 0}\n", "maxRequests is 0: write at least 1"),
        ("registries:\n  servers: [{name: a}, {name: A}]\n", "f: registries.servers has a twice"),
        ("registries:\n  authSecret: A_B\n", "authSecret is 'A_B': write the name of a Secret"),
        ("registries:\n  keys:\n  - prefix: ghcr.io\n", "f line 3: files is missing"),
        ("registries:\n  keys:\n  - {prefix: ghcr.io, files: []}\n", "files is empty: write at least one PEM file"),
        ("registries:\n  keys:\n  - {prefix: 'ghcr.io/os:1', files: [x]}\n", "prefix has 'ghcr.io/os:1': write"),
        ("registries:\n  keys:\n  - {prefix: ghrc.io, files: [x]}\n", "no images may come from that registry"),
        ("listen:\n  boot: 0.0.0.0:8082\n", "f: listen.boot is 0.0.0.0, to which machines cannot connect"),
        ("listen:\n  registry: '[::]:1'\n", "set advertise.registry to the URL"),
        ("listen:\n  events: 0.0.0.0:1\n", "f: listen.events is 0.0.0.0, to which machines cannot connect"),
        ("advertise:\n  api: http://192.0.2.1:1\n", "api is 'http://192.0.2.1:1': the API serves https only"),
        ("advertise:\n  events: http://192.0.2.1:1\n", "f: advertise.events is set and listen.events is not"),
        ("bmc:\n  eventSlowdown: 0\n", "f line 2: eventSlowdown is 0"),
        ("bmc:\n  workers: 0\n", "f line 2: workers is 0: write at least 1"),
        ("a: [\n", "this is not YAML"),
        ("- a\n", "the file must be a mapping"),
        ("listen:\n  api: 127.0.0.1:1\n  api: 127.0.0.1:2\n", "both say api"),
    ],
)
def test_a_mistake_is_named_with_its_line_and_the_fix(text: str, complaint: str) -> None:
    """Each invalid input has a message with the line and the fix."""
    with pytest.raises(ConfigError) as caught:
        parse(text, "f")
    assert complaint in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """A missing file is an error."""
    with pytest.raises(ConfigError, match="cannot be read"):
        load(tmp_path / "none.yaml")


def test_registries_have_entries_with_options_of_their_own(tmp_path: Path) -> None:
    """servers and keys are lists; a file that cannot be used is an error that names its option."""
    config, pub, auths = tmp_path / "metal.yaml", tmp_path / "cosign.pub", tmp_path / "config.json"
    config.write_text(f"""
registries:
  allowed: [registry.example]
  authFile: {auths}
  authSecret: registry-credentials
  servers:
  - name: registry.example
    mirrors: [mirror.example:5000/cache]
    maxRequests: 4
  keys:
  - prefix: registry.example/os
    files: [{pub}]
""")
    with pytest.raises(ConfigError, match=r"registries\.authFile: .*config\.json cannot be read"):
        load(config)
    auths.write_text('{"auths": {"registry.example": {"auth": "s3cret"}}}')
    with pytest.raises(ConfigError, match="no base64 of user:password") as caught:
        load(config)
    assert "s3cret" not in str(caught.value)
    auths.write_text('{"auths": {}}')
    with pytest.raises(ConfigError, match=r"registries\.keys: files of registry\.example/os: .*cosign\.pub cannot"):
        load(config)
    key = ed25519.Ed25519PrivateKey.generate().public_key()
    pub.write_bytes(key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    found = load(config).registry_settings()
    assert found.servers == (
        RegistryServer("registry.example", mirrors=("mirror.example:5000/cache",), max_requests=4),
    )
    assert found.keys == (SigningKeys("registry.example/os", (str(pub),)),)


def test_every_option_has_a_sentence() -> None:
    """Every option has a description, also those of the entries of lists."""
    values = (getattr(Config(), f.name) for f in dataclasses.fields(Config))
    sections: list[type] = [Config, *(type(value) for value in values if dataclasses.is_dataclass(value))]
    sections += [RegistryServer, SigningKeys]
    for section in sections:
        assert set(inspect.signature(section).parameters) == set(field_docs(section))


def test_the_documented_file_reads_back_as_the_defaults() -> None:
    """What `metalctl config` prints is a valid configuration."""
    assert parse(documented(), "f") == Config()


@given(st.text(max_size=80))
def test_no_text_breaks_the_parser(text: str) -> None:
    """Any text results in a configuration or a ConfigError."""
    with contextlib.suppress(ConfigError):
        assert isinstance(parse(text, "f"), Config)


@given(st.ip_addresses(), st.integers(0, 65535))
def test_any_address_and_port_can_be_listened_on(address: object, port: int) -> None:
    """IPv4 addresses are written plainly, IPv6 addresses in brackets."""
    text = f"[{address}]:{port}" if ":" in str(address) else f"{address}:{port}"
    assert split_listen(text) == (str(address), port)


def test_a_wildcard_address_needs_an_advertised_url() -> None:
    """A wildcard listen address requires an advertised URL."""
    text = "listen:\n  boot: 0.0.0.0:8082\nadvertise:\n  boot: http://192.0.2.1:8082\n"
    assert parse(text, "f").boot_url == "http://192.0.2.1:8082"


def test_events_are_subscribed_to_only_where_a_receiver_listens() -> None:
    """The event URL is advertised or derived from the listen address; without a receiver there is none."""
    assert parse("", "f").bmc_settings().event_url == ""
    assert parse("listen:\n  events: 192.0.2.1:10001\n", "f").event_url == "http://192.0.2.1:10001"
    text = "listen:\n  events: 0.0.0.0:10001\nadvertise:\n  events: https://events.example/\n"
    assert parse(text, "f").bmc_settings().event_url == "https://events.example"
