"""The estimate of tokens: near what real models count, and without surprises."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muniment.kit.counting import ERROR_PERCENT, TOKENIZER, estimate_tokens

texts = st.text(alphabet=st.sampled_from("aé中 あ.0\n\ud800"), max_size=20) | st.text(
    st.characters(exclude_categories=()), max_size=60
)

PROSE = (
    "The keeper of the lighthouse wrote down each ship that passed, with the hour and the weather. "
    "When the log was full he took it to the harbour office, where a clerk compared it with the "
    "list of arrivals. Three ships were missing from one of them, and nobody could say from which."
)
CODE = '''
def merge(left: list[Event], right: list[Event]) -> list[Event]:
    """Both lists in the order of their times."""
    merged = []
    while left and right:
        first = left if left[0].time <= right[0].time else right
        merged.append(first.pop(0))
    return merged + left + right
'''
JSON = (
    '{"id":"a7","size":4096,"tags":["north","spare"],"owner":{"name":"Ada","uid":1001},'
    '"created_at":"2024-05-17T08:30:00Z","checksum":null,"public":false}'
)
CHINESE = (
    "灯塔看守人记下每一艘经过的船，连同时间和天气。日志写满后，他把它送到港务局，"
    "由一名职员与到港名单核对。"
)
RUSSIAN = (
    "Смотритель маяка записывал каждое проходящее судно, время и погоду. "
    "Когда журнал заканчивался, он относил его в портовую контору."
)

# As o200k and the vocabularies of Qwen 3, Llama 3 and Gemma 3 count them.
COUNTED = [
    ("prose", PROSE, (59, 60, 60, 59)),
    ("code", CODE, (76, 76, 76, 85)),
    ("json", JSON, (55, 65, 54, 65)),
    ("cjk", CHINESE, (45, 41, 48, 41)),
    ("scripts", RUSSIAN, (39, 45, 42, 36)),
]


def test_it_names_itself_and_says_how_far_off_it_is() -> None:
    assert TOKENIZER == "muniment-spm-1"
    assert {kind for kind, _, _ in COUNTED} < set(ERROR_PERCENT)


@pytest.mark.parametrize(("kind", "text", "counts"), COUNTED)
def test_it_is_near_what_models_count(kind: str, text: str, counts: tuple[int, ...]) -> None:
    mean = sum(counts) / len(counts)
    # A short text may be twice as far off as they are on average.
    assert estimate_tokens(text) == pytest.approx(mean, rel=2 * ERROR_PERCENT[kind] / 100)


@pytest.mark.parametrize("text", [" ", "\0", "\x7f", "\u200b", "a", "\n", "\ud800", "\u2581"])
def test_what_is_not_empty_costs_something(text: str) -> None:
    assert estimate_tokens(text) >= 1


def test_only_nothing_is_free() -> None:
    assert estimate_tokens("") == 0


@pytest.mark.parametrize("text", ["cat", "the", "return", "中", "\n", "        "])
def test_what_is_common_is_one_token(text: str) -> None:
    assert estimate_tokens(text) == 1


def test_a_zero_byte_hides_nothing() -> None:
    assert estimate_tokens(PROSE + "\0" + PROSE) > 1.9 * estimate_tokens(PROSE)


@settings(max_examples=100)
@given(texts)
def test_it_is_positive_and_bounded(text: str) -> None:
    assert (estimate_tokens(text) == 0) == (text == "")
    assert estimate_tokens(text) <= len(text.encode(errors="surrogatepass"))


@settings(max_examples=150)
@given(texts, texts)
def test_together_they_cost_about_what_they_cost_alone(one: str, other: str) -> None:
    apart = estimate_tokens(one) + estimate_tokens(other)
    assert abs(estimate_tokens(one + other) - apart) <= 4


@settings(max_examples=50)
@given(texts)
def test_it_is_a_function_of_the_text(text: str) -> None:
    assert estimate_tokens(text) == estimate_tokens("".join(list(text)))


@pytest.mark.parametrize("repeated", [PROSE, CODE, CHINESE, "a", " ", "\n", "\0", "\ud800", "😀"])
def test_the_longest_texts_are_counted_in_proportion(repeated: str) -> None:
    size = len(repeated.encode(errors="surrogatepass"))
    short, long = 2**16 // size, 2**24 // size
    expected = estimate_tokens(repeated * short) * long / short
    assert estimate_tokens(repeated * long) == pytest.approx(expected, rel=0.01)


def test_a_sample_stands_for_a_text_of_several_kinds() -> None:
    parts = [text * (400_000 // len(text)) for text in (CHINESE, CODE, "0123456789abcdef", PROSE)]
    apart = sum(map(estimate_tokens, parts))
    assert estimate_tokens("".join(parts)) == pytest.approx(apart, rel=0.03)


@pytest.mark.parametrize("period", [8_192, 16_384, 31_250, 100_000])
def test_a_sample_meets_no_period_of_the_text(period: int) -> None:
    half = period // 2
    part = "0123456789abcdef" * (half // 16) + "kept " * (half // 5)
    text = part * (2_000_000 // len(part))
    expected = estimate_tokens(part) * len(text) / len(part)
    assert estimate_tokens(text) == pytest.approx(expected, rel=0.1)


FRESH = """
import sys
from concurrent.futures import ThreadPoolExecutor
from muniment.kit.counting import estimate_tokens
assert not {"sentencepiece", "numpy"} & set(sys.modules)
with ThreadPoolExecutor(8) as pool:
    counts = list(pool.map(estimate_tokens, ["what is said, and done"] * 64))
assert len(set(counts)) == 1
assert "numpy" not in sys.modules
"""


def test_it_is_loaded_when_needed_by_any_thread_and_prints_nothing() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", FRESH], capture_output=True, check=False, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
