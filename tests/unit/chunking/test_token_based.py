"""Where `token_based` cuts: as many tokens as fit, between words."""

from chunked_documents import Words, plain

from stemma.chunking.chunk import chunk_document
from stemma.chunking.ruler import MAX_CHARS_PER_TOKEN, Tokens
from stemma.chunking.token_based import token_based
from stemma.chunking.tokenizer import minilm_tokenizer


def contents(text: str, size: int, overlap: int = 0, tokenizer=None) -> list[str]:
    spans = token_based(plain(text), size=size, overlap=overlap, tokenizer=tokenizer or minilm_tokenizer())
    return [text[span.char_start : span.char_end] for span in spans]


def test_every_chunk_but_the_last_is_full_of_tokens():
    text = "The quick brown fox jumps over the lazy dog. " * 40
    counts = minilm_tokenizer().count(contents(text, 50))
    assert counts[:-1] == [50] * (len(counts) - 1)


def test_sentence_ends_are_passed_over():
    assert contents("One two. Three four. Five six.", 3, tokenizer=Words()) == ["One two. Three", "four. Five six."]


def test_an_overlap_is_counted_in_tokens():
    assert contents("a b c d e f g", 3, 1, tokenizer=Words()) == ["a b c", "c d e", "e f g"]


def test_a_word_of_several_tokens_stays_whole_where_it_fits():
    assert contents("embeddings embeddings embeddings", 6) == ["embeddings"] * 3


def test_a_word_of_more_tokens_than_the_size_is_cut_within_the_limit():
    found = contents("Donaudampfschifffahrtsgesellschaft", 5)
    assert "".join(found) == "Donaudampfschifffahrtsgesellschaft"
    assert max(minilm_tokenizer().count(found)) <= 5


def test_text_that_the_tokenizer_takes_for_one_word_is_cut_all_the_same():
    thai = "ภาษาไทยไม่มีเว้นวรรคระหว่างคำ" * 200
    found = contents(thai, 20)
    assert minilm_tokenizer().count([thai]) == [1]
    assert "".join(found) == thai
    assert max(map(len, found)) <= 20 * MAX_CHARS_PER_TOKEN


def test_invisible_characters_before_a_long_word_are_no_chunk_of_their_own():
    found = contents("\u200b\u3164\u2003\n\n" + "verylongtoken" * 12 + "-", 2)
    assert all(any(character.isalnum() and character != "\u3164" for character in content) for content in found)


def test_what_is_recorded_as_n_tokens_is_what_was_limited():
    frame = chunk_document(
        plain("Überraschung, naïve! 汉字处理 done. " * 30), strategy="token_based", size=40, overlap=10, tokenizer=minilm_tokenizer()
    )
    assert frame["n_tokens"].max() <= 40


def test_a_long_text_is_measured_as_a_short_one_is():
    text = "word, " * 20_000
    ruler = Tokens(text, minilm_tokenizer())
    assert ruler.furthest(60_000, 100) == 60_000 + 50 * len("word, ")
    assert ruler.earliest(60_000, 100) == 60_000 - 50 * len("word, ") - 1
