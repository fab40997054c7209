"""JSON, notebooks, source code, subtitles, mailboxes, Outlook messages and binary workbooks."""

import json
from pathlib import Path

import pytest

from stemma.errors import CorruptDocument

FILES = Path(__file__).parent / "files"


def spans(document, kind):
    return [document.text[block.char_start : block.char_end] for block in document.blocks if block.kind == kind]


def test_json_shows_names_and_values_with_every_digit(parse):
    document = parse(
        '{"name": "x\\u00e9", "n": 1.50, "big": 12345678901234567890123, "list": [1, {"a": "one\\ntwo", "b": []}, [2]], "nil": null, "e": ""}',
        "json",
    )
    assert document.text == (
        "name: xé\nn: 1.50\nbig: 12345678901234567890123\nlist:\n  - 1\n  - a:\n      one\n      two\n    b: []\n  -\n    - 2\nnil: null\n"
        'e: ""'
    )


def test_json_lines_are_cut_between_records_only(parse):
    records = [{"id": i, "text": "word " * 30} for i in range(10)]
    document = parse("\n".join(map(json.dumps, records)), "jsonl")
    assert all(block.startswith("id: ") for block in spans(document, "code"))
    assert "\n".join(spans(document, "code")) == document.text


def test_what_is_no_json_is_read_as_it_stands_with_a_warning(parse):
    document = parse('{\n  // a remark\n  "a": 1,\n}', "json")
    assert (document.text, document.warning) == ('{\n  // a remark\n  "a": 1,\n}', "invalid_syntax")


def test_json_nested_a_hundred_thousand_deep_is_corrupt(parse):
    with pytest.raises(CorruptDocument, match="nested too deeply"):
        parse("[" * 100_000 + "]" * 100_000, "json")


def test_a_notebook_has_its_markdown_code_and_outputs(parse):
    cells = [
        {"cell_type": "markdown", "source": ["# The *plan*\n", "\n", "| a |\n", "|---|\n", "| 1 |"]},
        {
            "cell_type": "code",
            "source": "# not a heading\nprint(1)",
            "outputs": [
                {"output_type": "stream", "text": ["\x1b[31m 10%\r 90%\n", "done\n"]},
                {"output_type": "execute_result", "data": {"text/plain": "42", "text/html": "<b>42</b>"}},
                {"output_type": "display_data", "data": {"image/png": "AAAA", "text/plain": "<Figure>"}},
                {"output_type": "error", "ename": "ValueError", "evalue": "no", "traceback": ["long"]},
            ],
        },
        {"cell_type": "raw", "source": "as it is"},
    ]
    document = parse(json.dumps({"cells": cells, "metadata": {"language_info": {"name": "python"}}, "nbformat": 4}), "ipynb")
    assert document.title == "The plan"
    assert spans(document, "table") == ["| a |\n|---|\n| 1 |"]
    assert spans(document, "code") == ["# not a heading\nprint(1)", " 90%\ndone", "42", "ValueError: no"]
    assert [asset.kind for asset in document.assets] == ["table", "figure"]
    assert document.text.endswith("as it is")


@pytest.mark.parametrize("data", ["{", "[]", '{"cells": 3}', '{"metadata": {}}'])
def test_what_is_no_notebook_is_corrupt(parse, data):
    with pytest.raises(CorruptDocument):
        parse(data, "ipynb")


PYTHON = '''"""A module."""

import os


# Why it is here.
@cached
def one():
    a = 1

    return a


class Two:
    x = 1
'''


def test_code_is_cut_where_definitions_begin(parse):
    document = parse(PYTHON, "py")
    assert document.text == PYTHON
    assert [block.split("\n")[0] for block in spans(document, "code")] == [
        '"""A module."""',
        "import os",
        "# Why it is here.",
        "class Two:",
    ]


def test_a_long_class_is_cut_between_its_methods(parse):
    method = "    def m{}(self):\n        a = 1\n\n        return a" + "  # " + "x" * 700 + "\n\n"
    document = parse("class A:\n    # first\n\n" + "".join(method.format(i) for i in range(4)), "py")
    assert [block.split("\n")[0].strip() for block in spans(document, "code")] == ["class A:", *(f"def m{i}(self):" for i in range(4))]


def test_a_closing_brace_begins_no_block(parse):
    document = parse("function f() {\n  a();\n\n}\n\nfunction g() {\n}\n", "js")
    assert spans(document, "code") == ["function f() {\n  a();\n\n}", "function g() {\n}"]


def test_what_is_said_stands_in_paragraphs_with_its_time(parse):
    document = parse(
        "WEBVTT\n\nNOTE hidden\n\nSTYLE\n::cue { color: red }\n\n1\n00:00:01.000 --> 00:00:03.000 align:start\n<v Ann>Hello <c.x>there</c> &amp;\nyou\n\n"
        "00:03.000 --> 00:05.000\n<v Ann>you\nand you.\n\n00:05.000 --> 00:06.000\n<v Bob>Hi\n\n01:01:10.500 --> 01:01:12.000\n<v Bob>later\n",
        "vtt",
    )
    assert document.text == "[0:00:01] Ann: Hello there & you and you.\n\n[0:00:05] Bob: Hi\n\n[1:01:10] Bob: later"


def test_subrip_is_read_as_webvtt_is(parse):
    text = "1\r\n00:00:01,000 --> 00:00:02,000\r\n<i>One</i>\r\n\r\n2\r\n00:00:02,500 --> 00:00:03,000\r\ntwo.\r\n"
    assert parse(text, "srt").text == "[0:00:01] One two."
    with pytest.raises(CorruptDocument):
        parse("no cue at all", "srt")


MESSAGE = "From: {0}@example.org\nSubject: About {0}\nContent-Type: text/plain; charset=utf-8\n\nWords of {0}.\n>From here on\n\n"


def test_a_mailbox_has_each_message_below_its_subject(parse):
    text = "".join(f"From {name}@example.org Thu Jan  1 00:00:00 2026\n{MESSAGE.format(name)}" for name in ("ann", "bob"))
    document = parse(text, "mbox")
    assert spans(document, "heading") == ["About ann", "About bob"]
    assert "Words of bob." in document.text
    assert document.metadata["n_messages"] == 2
    with pytest.raises(CorruptDocument):
        parse("no message\n", "mbox")


def test_attachments_are_named_in_the_text(parse):
    mail = (
        "From: a@example.org\nSubject: S\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=B\n\n--B\nContent-Type: text/plain\n\nbody\n"
        '--B\nContent-Type: application/pdf\nContent-Disposition: attachment; filename="r\u00e9port.pdf"\n\nx\n'
        "--B\nContent-Type: message/rfc822\nContent-Disposition: attachment\n\nSubject: Inner\n\nhidden\n--B--\n"
    )
    document = parse(mail, "eml")
    assert document.text == "From: a@example.org\nSubject: S\nAttachments: réport.pdf, Inner.eml\n\nbody"


def test_an_outlook_message_is_read_as_a_mail(parse):
    document = parse(FILES / "minutes.msg")
    assert document.text == (
        'From: "Ann Example" <ann@example.org>\nTo: Bob Example <bob@example.org>\nDate: 2026-03-04 05:06:07+00:00\n'
        "Subject: Minutes of the meeting\nAttachments: minutes.pdf\n\nDear all,\n\nneedle-msg the minutes are attached."
    )
    assert (document.title, document.parser) == ("Minutes of the meeting", "msg")


@pytest.mark.parametrize("name", ["rooms.xls", "rooms.doc"])
def test_a_binary_workbook_has_its_sheets_as_pages(parse, tmp_path, name):
    path = tmp_path / name
    path.write_bytes((FILES / "rooms.xls").read_bytes())
    document = parse(path)
    assert spans(document, "table") == [
        "| name | seats | since |\n| --- | --- | --- |\n| Aula | 120 | 2019-05-01 |\n| Lab | 12.5 | 2020-01-31 |"
    ]
    assert [page.label for page in document.pages] == ["Räume", "secret", "blank"]
    assert document.metadata["hidden_sheets"] == ["secret"]


@pytest.mark.parametrize("extension", ["xlsb", "xlsx", "zip"])
def test_a_binary_workbook_in_a_zip_is_known_under_any_extension(parse, tmp_path, extension):
    path = tmp_path / f"rooms.{extension}"
    path.write_bytes((FILES / "rooms.xlsb").read_bytes())
    document = parse(path)
    assert spans(document, "table") == ["| name | seats |\n| --- | --- |\n| Aula | 120 |\n| Lab | 12.5 |"]
    assert (document.parser, document.metadata["hidden_sheets"]) == ("xlsb", ["secret"])


@pytest.mark.parametrize("name", ["rooms.xls", "rooms.xlsb", "minutes.msg"])
def test_a_cut_container_is_corrupt(parse, tmp_path, name):
    path = tmp_path / name
    path.write_bytes((FILES / name).read_bytes()[:1_000])
    with pytest.raises(CorruptDocument):
        parse(path)


def test_a_web_page_with_an_office_extension_is_a_web_page(parse):
    assert parse("<html><body><table><tr><td>a<td>b</table>", "xls").parser == "html"
