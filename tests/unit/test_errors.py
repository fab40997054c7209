"""Errors as people read them."""

import pytest

from stemma.errors import CorruptDocument, RequestError, as_sentence


@pytest.mark.parametrize(
    ("text", "sentence"),
    [("it is away", "it is away."), ("is it?", "is it?"), ("No!", "No!"), ("done.", "done."), ("and so on …", "and so on …"), ("", "")],
)
def test_a_sentence_ends_once(text, sentence):
    assert as_sentence(text) == sentence


def test_no_error_ends_a_question_with_a_full_stop():
    assert str(RequestError("did you mean this?")) == "did you mean this?"
    assert CorruptDocument("a.pdf", "is it a PDF?").message.startswith("is it a PDF? Open it")
    assert str(CorruptDocument("a.pdf", "no PDF")).startswith("a.pdf: no PDF. Open it")
