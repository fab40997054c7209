"""Bytes -> text."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stemma.parsing.encoding import NotText, decode

RUSSIAN = "Совещание назначено на пятницу, бюджет утверждён. Протокол ведёт секретарь."


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), min_size=1))
def test_utf8_with_a_mark_is_certain_and_unchanged(text):
    decoded = decode(b"\xef\xbb\xbf" + ("safe text around " * 4 + text).encode())
    assert decoded.text == "safe text around " * 4 + text
    assert not decoded.guessed


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_unicode_with_or_without_mark_is_no_guess(encoding):
    decoded = decode(f"{RUSSIAN} 😀".encode(encoding))
    assert (decoded.text, decoded.guessed) == (f"{RUSSIAN} 😀", False)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf16_without_mark_is_known_by_its_nuls(encoding):
    decoded = decode("A plain sentence of Latin letters.\n".encode(encoding))
    assert (decoded.text, decoded.encoding, decoded.guessed) == ("A plain sentence of Latin letters.\n", encoding, True)


def test_one_broken_byte_does_not_turn_a_whole_text_into_another_alphabet():
    data = bytearray(RUSSIAN.encode())
    data[41] = 0xFF
    decoded = decode(bytes(data))
    assert (decoded.encoding, decoded.guessed) == ("utf-8", True)
    assert decoded.text.endswith("Протокол ведёт секретарь.")


def test_single_nuls_do_not_make_a_text_utf16():
    assert decode(b"a,b\n1,needle\x00-csv\n").text == "a,b\n1,needle-csv\n"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("latin1.txt", "Crème brûlée, naïve façade, Straße, señor"),
        ("cp1252_quotes.txt", "“Quoted” – dash, euro €, trademark ™"),
        ("koi8_r.txt", "Совещание назначено на пятницу"),
        ("shift_jis.txt", "会議室の予約は金曜日までに行う"),
        ("euc_kr.txt", "회의는 금요일 오후에 열린다"),
        ("gb18030.txt", "会议安排在星期五下午"),
        ("utf16be_nobom.txt", "without a byte order mark"),
    ],
)
def test_old_encodings_are_read_and_reported_as_guesses(shared, name, expected):
    decoded = decode((shared / "files/generated/txt" / name).read_bytes())
    assert expected in decoded.text
    assert decoded.guessed


def test_polish_is_not_taken_for_western():
    polish = "Zażółć gęślą jaźń. Posiedzenie komisji odbędzie się w piątek, a budżet został już zatwierdzony przez radę. " * 5
    assert decode(polish.encode("cp1250")).text == polish


def test_a_character_cut_at_the_end_costs_only_itself():
    decoded = decode("a text in UTF-8 é".encode()[:-1])
    assert decoded.text == "a text in UTF-8 \ufffd"


def test_declared_charset_is_believed_before_a_guess_but_after_utf8():
    page = '<meta charset="windows-1251"><p>Да</p>'
    assert "Да" in decode(page.encode("cp1251"), markup=True).text
    assert decode('<meta charset="iso-8859-1">Crème'.encode(), markup=True).text.endswith("Crème")


@pytest.mark.parametrize("rubbish", [bytes(1000), bytes(range(32)) * 50, os.urandom(4096)], ids=["nuls", "controls", "random"])
def test_binary_rubbish_is_no_text(rubbish):
    with pytest.raises(NotText):
        decode(rubbish)
