"""Wires the Endpoint, BMC and BMCSecret reconcilers to a runtime."""

from metal.controllers import bmc, bmcsecret, endpoint
from metal.controllers.prefixfile import PrefixFile
from metal.controllers.scope import Context
from metal.controllers.settings import BMCSettings, EndpointSettings
from metal.controllers.setup import Environment
from metal.kube.controller import Controller


def setup_endpoints(env: Environment, settings: EndpointSettings, prefixes: PrefixFile) -> Controller:
    """Add the Endpoint controller; it follows changes of the MAC prefix file."""
    reconciler = endpoint.EndpointReconciler(
        _context(env), env.runtime, env.pool, prefixes, env.access_defaults, settings
    )
    return endpoint.setup(reconciler, env.runtime)


def setup_bmcs(env: Environment, settings: BMCSettings) -> Controller:
    """Add the BMC controller."""
    reconciler = bmc.BMCReconciler(_context(env), env.runtime, env.pool, env.access_defaults, settings)
    return bmc.setup(reconciler, env.runtime)


def setup_bmc_secrets(env: Environment) -> Controller:
    """Add the BMCSecret controller."""
    return bmcsecret.setup(bmcsecret.BMCSecretReconciler(_context(env), env.runtime), env.runtime)


def _context(env: Environment) -> Context:
    return Context(env.runtime.client, env.kinds, env.clock, env.rng, env.recorder)
