"""Private registries, over TLS on loopback: credentials, tokens and authorities."""

import json
from dataclasses import replace
from typing import Any

import pytest

from metal.boot.errors import ImageError
from metal.boot.registry.credentials import Auths, parse_auths
from metal.boot.registry.settings import RegistryClientSettings, RegistryServer
from metal.boot.registry_client import RegistryClient
from tests.boot import registry as oci
from tests.boot.registry import KERNEL, Registry, basic
from tests.boot.registry.private import ACCOUNT, PASSWORD, Site, another, failure, fetched, image, read
from tests.kube.client.pki import Authority


async def test_basic_authentication_is_sent_from_the_second_request_on(site: Site, registry: Registry) -> None:
    """The first request learns the scheme; the header is remembered for the repository."""
    registry.account = ACCOUNT
    site.auths({registry.name: ACCOUNT})
    client = site.client(registry)
    assert await read(client, image(registry)) == registry.manifests["1"][1]
    assert await fetched(client, image(registry)) == KERNEL
    assert registry.authorizations == ["", basic(ACCOUNT), basic(ACCOUNT)]


async def test_a_token_is_fetched_with_basic_authentication_for_each_repository(site: Site, registry: Registry) -> None:
    """Once for each, with the scope to pull; the registry itself never sees the password."""
    registry.account, registry.token = ACCOUNT, "t0ken"
    site.auths({registry.name: ACCOUNT})
    client = site.client(registry)
    for repository in ("team/os", "team/os", "team/other"):
        await read(client, image(registry, repository))
    asked = [path for path in registry.requests if path.startswith("/token")]
    assert ["repository:team/os:pull" in path for path in asked] == [True, False]
    assert all("service=test" in path for path in asked)
    assert registry.token_authorizations == [basic(ACCOUNT)] * 2
    assert basic(ACCOUNT) not in registry.authorizations


async def test_an_identity_token_is_exchanged_by_post(site: Site, registry: Registry) -> None:
    """OAuth2 with grant_type refresh_token, and no Basic authentication beside it."""
    registry.token, registry.refresh_token = "t0ken", "idt0ken"
    site.auths({registry.name: {"auth": basic("<token>:x")[6:], "identitytoken": "idt0ken"}})
    await read(site.client(registry), image(registry))
    (form,) = registry.forms
    assert form["grant_type"] == "refresh_token"
    assert form["scope"] == "repository:team/os:pull"
    assert form["service"] == "test"
    assert form["client_id"]
    assert registry.token_authorizations == [""]


async def test_a_registry_token_is_sent_as_it_is(site: Site, registry: Registry) -> None:
    """`registrytoken` of a docker config is a Bearer token."""
    registry.token = "t0ken"
    site.auths({registry.name: {"registrytoken": "t0ken"}})
    await read(site.client(registry), image(registry))
    assert registry.asked("/token") == 0


@pytest.mark.parametrize("separate", [False, True])
async def test_of_several_challenges_the_token_service_is_used(site: Site, registry: Registry, separate: bool) -> None:
    """In one header or in two: the password is not sent to the registry where a token does."""
    registry.account, registry.token = ACCOUNT, "t0ken"
    challenges = ['Basic realm="here, or there"', f'Bearer realm="https://{registry.name}/token",service="test"']
    registry.challenges = challenges if separate else [", ".join(challenges)]
    site.auths({registry.name: ACCOUNT})
    await read(site.client(registry), image(registry))
    assert registry.token_authorizations == [basic(ACCOUNT)]
    assert basic(ACCOUNT) not in registry.authorizations


@pytest.mark.parametrize("validity", [None, "soon", -1, 0, True, [], 1e300, 0.5])
async def test_any_validity_of_a_token_is_accepted(site: Site, registry: Registry, validity: Any) -> None:
    """expires_in is optional, and some services write it in other ways."""
    registry.token, registry.validity = "t0ken", validity
    site.auths({})
    await read(site.client(registry), image(registry))


async def test_a_token_that_expired_early_is_renewed_once(site: Site, registry: Registry) -> None:
    """One 401 leads to one request for a token; a second one is an error."""
    registry.token = "first"
    site.auths({})
    client = site.client(registry)
    await read(client, image(registry))
    registry.token = "second"
    await read(client, image(registry))
    assert registry.asked("/token") == 2
    registry.challenges = [f'Bearer realm="https://{registry.name}/token"']
    registry.refresh_token = "no one has it"
    registry.token = "third"
    assert (await failure(client, image(registry))).reason == "RegistryDenied"
    assert registry.asked("/token") == 3


async def test_credentials_that_change_are_used_without_a_restart(site: Site, registry: Registry) -> None:
    """The file is read again when it changes; one that cannot be used leaves the former content in use."""
    registry.account = ACCOUNT
    site.auths({registry.name: ACCOUNT})
    client = site.client(registry)
    await read(client, image(registry))
    registry.account = "robot:n3w"
    site.auths({registry.name: "robot:n3w"})
    await read(client, image(registry))
    site.auth_file.write_text("{")
    await read(client, image(registry))
    registry.account = "robot:newest"
    error = await failure(client, image(registry))
    assert "is not JSON" in str(error)
    assert error.transient


async def test_credentials_that_are_removed_are_not_used_any_more(site: Site, registry: Registry) -> None:
    """Nor is a token that was obtained with them."""
    registry.account, registry.token = ACCOUNT, "t0ken"
    site.auths({registry.name: ACCOUNT})
    client = site.client(registry)
    await read(client, image(registry))
    site.auths({})
    assert (await failure(client, image(registry))).reason == "RegistryDenied"
    assert registry.authorizations[-1] == ""


async def test_a_rejected_password_is_read_again_for_the_same_pull(site: Site, registry: Registry) -> None:
    """As from a Secret, which is not read for each request; the same password is not tried twice."""
    registry.account = ACCOUNT
    content = parse_auths(
        json.dumps({"auths": {registry.name: {"username": "robot", "password": PASSWORD}}}).encode(), "s"
    )

    class Slow:
        problem, rejections, fixed = "", 0, False

        async def auths(self, *, rejected: bool = False) -> Auths:
            self.rejections += rejected
            old = {name: replace(entry, password="old") for name, entry in content.items()}
            return content if rejected and self.fixed else old

    source = Slow()
    settings = RegistryClientSettings((registry.name,), servers=(RegistryServer(registry.name, site.ca_file),))
    client = RegistryClient(settings, credentials=[source])
    site.clients.append(client)
    await failure(client, image(registry))
    assert (source.rejections, len(registry.authorizations)) == (1, 2)
    source.fixed = True
    await read(client, image(registry))
    assert source.rejections == 2


async def test_the_credentials_of_the_longest_prefix_are_used(site: Site, registry: Registry) -> None:
    """A registry may have an account for each team."""
    registry.account = "team:1"
    site.auths({registry.name: "site:2", f"{registry.name}/team": "team:1", f"{registry.name}/team/os2": "os2:3"})
    client = site.client(registry)
    await read(client, image(registry, "team/os"))
    with pytest.raises(ImageError, match=f"for {registry.name} of file"):
        await read(client, image(registry, "teams/os"))


async def test_a_denied_pull_names_the_entry_and_no_password(site: Site, registry: Registry) -> None:
    """Which credentials were tried, by the key in the docker config and its file; it is a lasting error."""
    registry.account = ACCOUNT
    site.auths({f"{registry.name}/team": "robot:" + PASSWORD + "x"})
    client = site.client(registry)
    error = await failure(client, image(registry))
    assert (error.reason, error.transient) == ("RegistryDenied", False)
    assert f"tried with the credentials for {registry.name}/team of file {site.auth_file}" in str(error)
    assert "tried with no credentials" in str(await failure(client, image(registry, "other")))


async def test_a_password_is_never_sent_over_http(site: Site) -> None:
    """Not to an insecure registry, and not to a token service that is asked for over http."""
    async with oci.running() as plain:
        plain.os_image(tag="1")
        plain.account = ACCOUNT
        site.auths({plain.name: ACCOUNT})
        error = await failure(site.client(plain), image(plain))
        assert "none are sent over http" in str(error)
        assert plain.authorizations == [""]
        async with another(site, plain) as registry:
            registry.token, registry.realm = "t0ken", f"http://{plain.name}/token"
            site.auths({registry.name: ACCOUNT})
            assert "over http" in str(await failure(site.client(registry), image(registry)))
            assert plain.token_authorizations == []


async def test_a_password_is_sent_to_no_foreign_token_service(site: Site, registry: Registry) -> None:
    """Unless the configuration lists its host; a registry could pass it on to another host otherwise."""
    async with another(site, dns="localhost") as service:
        service.token = registry.token = "t0ken"
        service.account = ACCOUNT
        registry.realm = f"https://localhost:{service.port}/token"
        site.auths({registry.name: ACCOUNT})
        error = await failure(site.client(registry), image(registry))
        assert (error.reason, error.transient) == ("TokenServiceNotAllowed", False)
        assert "add that host to tokenServices" in str(error)
        assert service.requests == []
        await read(site.client(registry, token_services=("localhost",)), image(registry))
        assert service.token_authorizations == [basic(ACCOUNT)]


async def test_without_a_password_any_token_service_may_be_asked(site: Site, registry: Registry) -> None:
    """An anonymous token is no secret of the site."""
    async with another(site, dns="localhost") as service:
        service.token = registry.token = "t0ken"
        registry.realm = f"https://localhost:{service.port}/token"
        site.auths({})
        await read(site.client(registry), image(registry))


@pytest.mark.parametrize("place", ["https://robot:x@127.0.0.1/token", "https://robot@127.0.0.1/token"])
async def test_a_url_with_a_user_is_an_error_of_the_registry(site: Site, registry: Registry, place: str) -> None:
    """Of a token service and of a redirect."""
    site.auths({})
    registry.token, registry.realm = "t0ken", place
    assert (await failure(site.client(registry), image(registry))).reason == "RegistryMisbehaves"
    registry.token, registry.faults.redirect = "", place
    with pytest.raises(ImageError, match="invalid URL"):
        await fetched(site.client(registry), image(registry))


async def test_a_redirect_carries_no_credentials(site: Site, registry: Registry) -> None:
    """Blobs come from another host without the Authorization header."""
    registry.account = ACCOUNT
    site.auths({registry.name: ACCOUNT})
    async with another(site, registry) as storage:
        registry.faults.redirect = f"https://{storage.name}/cdn"
        assert await fetched(site.client(registry), image(registry)) == KERNEL
        assert storage.authorizations == [""]


async def test_a_registry_needs_its_own_authority(site: Site, registry: Registry) -> None:
    """Its file is read again when it changes; the authorities of the system stay valid beside it."""
    site.auths({})
    site.trust(Authority())
    client = site.client(registry)
    error = await failure(client, image(registry))
    assert error.transient
    assert f"set caFile of {registry.name} in registries.servers" in str(error)
    site.trust(site.authority)
    await read(client, image(registry))
