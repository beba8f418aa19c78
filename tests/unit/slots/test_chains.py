"""Chains of hashed token blocks."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muniment.slots.chains import TokenChain
from muniment.slots.limits import CHAIN_BLOCK_TOKENS
from muniment.v1 import store_pb2

TOKENS = st.lists(st.integers(min_value=0, max_value=2**31 - 1), max_size=5 * CHAIN_BLOCK_TOKENS)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(TOKENS, TOKENS, TOKENS)
def test_what_two_prompts_share_is_told_in_whole_blocks(
    common: list[int], mine: list[int], theirs: list[int]
) -> None:
    one, other = common + mine, common + theirs
    prefix = next(
        (at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]),
        min(len(one), len(other)),
    )
    shared = TokenChain.of(one, "t").shared_tokens(TokenChain.of(other, "t"))
    whole = len(one) if one == other else prefix - prefix % CHAIN_BLOCK_TOKENS
    assert shared == whole


@given(TOKENS)
def test_a_chain_survives_being_kept(tokens: list[int]) -> None:
    chain = TokenChain.of(tokens, "t")
    raw = chain.to_row().SerializeToString()
    assert TokenChain.from_row(store_pb2.StoredTokenChain.FromString(raw)) == chain
    assert chain.tokens == len(tokens)


def test_chains_of_two_tokenizers_share_nothing() -> None:
    tokens = list(range(200))
    assert TokenChain.of(tokens, "a").shared_tokens(TokenChain.of(tokens, "b")) == 0


def test_no_tokens_have_no_head() -> None:
    assert TokenChain.of([], "t").head == b""
    assert TokenChain.of([0], "t").head != b""
