"""The answers of /livez and /readyz."""

from metal.kube.controller.health import Answer, Health


def test_all_checks_pass() -> None:
    """One word, or a line for each check where `verbose` is asked for."""
    health = Health()
    health.add("caches", lambda: "")
    assert health.answer("/readyz", {}) == Answer(True, "ok")
    assert health.answer("/readyz", {"verbose": ""}) == Answer(True, "[+]ping ok\n[+]caches ok\nreadyz check passed\n")
    assert health.passed


def test_a_check_that_fails_is_named_with_its_reason() -> None:
    """Every check has its line then; /livez fails only where a restart helps."""
    health = Health()
    health.add("caches", lambda: "servers are not listed")
    health.add("tasks", lambda: "")
    expected = "[+]ping ok\n[-]caches failed: servers are not listed\n[+]tasks ok\nreadyz check failed\n"
    assert health.answer("/readyz", {}) == Answer(False, expected)
    assert health.answer("/livez", {}) == Answer(True, "ok")
    health.add("tasks", lambda: "events: ended", live=True)
    assert health.answer("/livez", {}) == Answer(
        False, "[+]ping ok\n[-]tasks failed: events: ended\nlivez check failed\n"
    )
    assert repr(health) == "<Health not ready checks=ping,caches,tasks>"


def test_one_check_can_be_asked_for() -> None:
    """A check that does not exist has no answer."""
    health = Health()
    health.add("caches", lambda: "servers are not listed")
    assert health.answer("/readyz/caches", {}) == Answer(False, "internal server error: servers are not listed")
    assert health.answer("/readyz/ping", {}) == Answer(True, "ok")
    assert health.answer("/livez/caches", {}) is None
