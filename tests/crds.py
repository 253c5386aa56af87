"""The CRDs that the product ships, generated once in a process: hundreds of tests install them."""

import json
from functools import cache
from typing import Any

from metal.api.kinds import Kinds
from metal.codegen import crd


def crds(kinds: Kinds) -> list[dict[str, Any]]:
    """The CRDs of these kinds; the caller may change them."""
    made: list[dict[str, Any]] = json.loads(_text(kinds))
    return made


@cache
def _text(kinds: Kinds) -> str:
    return json.dumps(crd.crds(kinds))
