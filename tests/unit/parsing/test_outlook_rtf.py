"""Compressed rich text: the examples of its specification ([MS-OXRTFCP] 3.1), and what is none."""

import pytest

from stemma.parsing.outlook_rtf import rich_text

SIMPLE = bytes.fromhex("2d0000002b0000004c5a4675f1c5c7a703000a007263706731323542320af32068656c090020627705b06c647d0a800fa0")
INTO_ITSELF = bytes.fromhex("1a0000001c0000004c5a4675e2d44b51410004205758595a0d6e7d010eb0")


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (SIMPLE, b"{\\rtf1\\ansi\\ansicpg1252\\pard hello world}\r\n"),
        (INTO_ITSELF, b"{\\rtf1 WXYZWXYZWXYZWXYZWXYZ}"),
        (bytes.fromhex("10000000040000004d454c4100000000") + b"{\\rt", b"{\\rt"),
    ],
    ids=["simple", "what is copied reaches into itself", "not compressed"],
)
def test_rich_text_is_unpacked(data, expected):
    assert rich_text(data) == expected


@pytest.mark.parametrize("data", [b"", SIMPLE[:20], SIMPLE[:-2], SIMPLE[:8] + b"nope" + SIMPLE[12:]])
def test_what_is_cut_off_or_of_another_kind_is_refused(data):
    with pytest.raises(ValueError, match=r"cut off|unknown"):
        rich_text(data)
