"""Shares in all, and of one key."""

import pytest

from metal.listener.shares import Exhausted, Shares


def test_one_key_cannot_take_everything() -> None:
    """Beyond its part a key is refused while another gets one; what is given back can be taken again."""
    shares = Shares(3, {"holder": 2})
    with shares.take(holder="a"):
        with shares.take(holder="a"):
            with pytest.raises(Exhausted) as one, shares.take(holder="a"):
                pass
            with shares.take(holder="b"):
                with pytest.raises(Exhausted) as total, shares.take(holder="c"):
                    pass
                assert (one.value.kind, total.value.kind) == ("holder", "")
        with shares.take(holder="a"):
            assert repr(shares) == "<Shares 2 of 3>"
    assert repr(shares) == "<Shares 0 of 3>"


def test_an_empty_key_is_not_limited() -> None:
    """It counts in the total only."""
    shares = Shares(9, {"holder": 0})
    with shares.take(holder="", other="x"):
        assert repr(shares) == "<Shares 1 of 9>"
