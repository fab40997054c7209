"""What mails, mailboxes, Outlook messages and archives hold is listed, and what is taken out is what was listed."""

import zipfile
from email.message import EmailMessage
from hashlib import sha256
from io import BytesIO
from pathlib import Path

import pytest

from stemma.errors import CorruptDocument, EncryptedDocument
from stemma.parsing import members
from stemma.parsing.document import ParsedDocument
from stemma.parsing.draft import ParsingOptions
from stemma.parsing.formats import FORMATS, HEAD_BYTES, detect_format
from stemma.parsing.members import contained_in
from stemma.parsing.parse import take_out_members

FILES = Path(__file__).parent / "files"
PIXEL = b"\x89PNG\r\n\x1a\n....."


def zipped(*parts: tuple[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as made, pytest.MonkeyPatch.context() as patch:
        patch.setattr("warnings.warn", lambda *_, **__: None)  # of names that are there twice
        for name, content in parts:
            made.writestr(name, content)
    return buffer.getvalue()


def mail(subject: str = "Minutes") -> EmailMessage:
    message = EmailMessage()
    message["From"], message["Subject"] = "ann@example.org", subject
    message.set_content("The body.")
    return message


def listed(document: ParsedDocument) -> list[str]:
    return [member.path for member in contained_in(document)]


def taken_out(tmp_path: Path, data: bytes, extension: str, document: ParsedDocument) -> dict[str, bytes]:
    """Every member that the document lists, as it comes out of the file."""
    container = tmp_path / f"container.{extension}"
    container.write_bytes(data)
    targets = {member.path: tmp_path / str(number) for number, member in enumerate(contained_in(document)) if member.sha256}
    taken = take_out_members(container, source_path="c", format=FORMATS[document.parser], options=ParsingOptions(), targets=targets)
    assert taken == dict.fromkeys(targets)
    return {path: target.read_bytes() for path, target in targets.items()}


def assert_listed_as_taken_out(tmp_path: Path, data: bytes, extension: str, document: ParsedDocument) -> dict[str, bytes]:
    contents = taken_out(tmp_path, data, extension, document)
    said = {member.path: (member.size, member.sha256) for member in contained_in(document) if member.sha256}
    assert said == {path: (len(content), sha256(content).hexdigest()) for path, content in contents.items()}
    return contents


def test_a_mail_lists_its_attachments_with_name_type_size_and_hash(parse, tmp_path):
    message, inner = mail(), mail("Inner")
    inner.add_attachment(b"deep", maintype="application", subtype="octet-stream", filename="deep.bin")
    message.add_attachment(b"%PDF-1.4", maintype="application", subtype="pdf", filename="r\u00e9port.pdf")
    message.add_attachment("notes\n", filename="notes.txt")
    message.add_attachment(inner)
    document = parse(message.as_bytes(), "eml")
    assert listed(document) == ["r\u00e9port.pdf", "notes.txt", "Inner.eml"]
    assert [member.media_type for member in contained_in(document)] == ["application/pdf", "text/plain", "message/rfc822"]
    assert "Attachments: r\u00e9port.pdf, notes.txt, Inner.eml" in document.text
    contents = assert_listed_as_taken_out(tmp_path, message.as_bytes(), "eml", document)
    assert contents["r\u00e9port.pdf"] == b"%PDF-1.4"
    assert listed(parse(contents["Inner.eml"], "eml")) == ["deep.bin"]


def test_what_a_reader_sees_in_the_mail_is_no_attachment(parse):
    message = mail()
    message.add_alternative('<p>The body. <img src="cid:logo@x"></p>', subtype="html")
    message.get_payload()[1].add_related(PIXEL, maintype="image", subtype="png", cid="<logo@x>", filename="logo.png")
    message.make_mixed()
    message.add_attachment(PIXEL, maintype="image", subtype="png", cid="<logo@x>", filename="again.png")
    message.add_attachment(PIXEL, maintype="image", subtype="png", filename="scan.png")
    message.add_attachment(b"sig", maintype="application", subtype="pgp-signature", filename="signature.asc")
    assert listed(parse(message.as_bytes(), "eml")) == ["scan.png"]


def test_parts_without_a_name_get_one_from_their_place_and_type(parse):
    message = mail()
    message.add_attachment(b"%PDF-1.4", maintype="application", subtype="pdf")
    message.add_attachment(mail(""))
    assert listed(parse(message.as_bytes(), "eml")) == ["part-2.pdf", "message.eml"]


def test_a_mail_that_is_a_file_itself_holds_it(parse):
    fax = b"Subject: Fax\nMIME-Version: 1.0\nContent-Type: application/pdf\nContent-Transfer-Encoding: base64\n\nJVBERi0xLjQ=\n"
    assert listed(parse(fax, "eml")) == ["part-1.pdf"]


def test_hostile_names_of_attachments_stay_names(parse):
    message = mail()
    for name in ("../../etc/passwd", "/etc/shadow", "C:\\boot.ini", "@note", "a.txt", "A.txt", "a.txt"):
        message.add_attachment(b"x", maintype="application", subtype="octet-stream", filename=name)
    paths = listed(parse(message.as_bytes(), "eml"))
    assert paths == ["%2E.%2F..%2Fetc%2Fpasswd", "%2Fetc%2Fshadow", "C:\\boot.ini", "@note", "a.txt", "A.txt", "a%~2.txt"]


def test_a_mailbox_lists_attachments_below_the_number_of_their_message(parse, tmp_path):
    first, second = mail("First"), mail("Second")
    second.add_attachment(b"one", maintype="application", subtype="octet-stream", filename="x.bin")
    box = b"".join(b"From a@b Thu Jan  1 00:00:00 2026\n" + message.as_bytes() + b"\n" for message in (first, second))
    document = parse(box, "mbox")
    assert assert_listed_as_taken_out(tmp_path, box, "mbox", document) == {"2/x.bin": b"one"}


def test_an_outlook_message_lists_its_attachments(parse, tmp_path):
    document = parse(FILES / "minutes.msg")
    contents = assert_listed_as_taken_out(tmp_path, (FILES / "minutes.msg").read_bytes(), "msg", document)
    assert list(contents) == ["minutes.pdf"]


def test_messages_that_outlook_keeps_inside_a_message_are_mails_of_their_own(parse, tmp_path):
    document = parse(FILES / "forwarded.msg")
    assert listed(document) == ["Größe der Räume: Übersicht.eml", "Rich.eml", "Damaged.eml", "Chart", "plan.txt"]
    assert [member.error_code for member in contained_in(document)] == [None, None, None, "unsupported", None]  # a chart is no file
    assert (document.warning, document.metadata["unreadable_parts"]) == ("partly_unreadable", ["rich text body of Damaged"])
    contents = assert_listed_as_taken_out(tmp_path, (FILES / "forwarded.msg").read_bytes(), "msg", document)
    inner = parse(contents["Größe der Räume: Übersicht.eml"], "eml")
    assert inner.text == (
        "From: Bea Größer <bea@example.org>\nTo: Ann <ann@example.org>\nDate: Wed, 04 Mar 2026 09:30:00 +0000\n"
        "Subject: Größe der Räume: Übersicht\nAttachments: rooms.csv, Deepest.eml\n\nneedle-inner: the rooms are measured."
    )
    assert parse(contents["Rich.eml"], "eml").text.endswith("Subject: Rich\n\nhello world")
    within = taken_out(tmp_path, contents["Größe der Räume: Übersicht.eml"], "eml", inner)
    assert within["rooms.csv"] == b"room,size\nneedle-rooms,12\n"
    assert "needle-deep" in parse(within["Deepest.eml"], "eml").text


def test_an_archive_is_the_list_of_its_files(parse, tmp_path):
    data = zipped(("docs/a.txt", b"alpha"), ("docs/", b""), ("../up.txt", b"up"), ("docs/a.txt", b"other"))
    document = parse(data, "zip")
    assert document.text == "- docs/a.txt (5 bytes)\n- ../up.txt (2 bytes)\n- docs/a.txt (5 bytes)"
    contents = assert_listed_as_taken_out(tmp_path, data, "zip", document)
    assert contents == {"docs/a.txt": b"alpha", "%2E./up.txt": b"up", "docs/a%~2.txt": b"other"}


def test_an_archive_of_an_office_file_is_an_archive():
    package = zipped(("[Content_Types].xml", b"x"), ("word/document.xml", b"x"), compression=zipfile.ZIP_STORED)
    data = zipped(("letter.docx", package), compression=zipfile.ZIP_STORED)
    assert detect_format(data[:HEAD_BYTES], "zip") is FORMATS["zip"]
    assert detect_format(package[:HEAD_BYTES], "zip") is FORMATS["docx"]


def test_an_empty_archive_has_no_text(parse):
    assert parse(zipped(), "zip").warning == "no_text"


def encrypted(data: bytes, *, n_members: int) -> bytes:
    """The archive with its first members marked as encrypted, in both of its directories."""
    marked, at = bytearray(data), 0
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = 0
        for _ in range(n_members):
            at = marked.index(signature, at) + 4
            marked[at - 4 + offset] |= 1
    return bytes(marked)


def test_an_archive_that_is_encrypted_is_encrypted_and_one_that_partly_is_says_so_of_those_members(parse):
    data = zipped(("secret.txt", b"s"), ("open.txt", b"o"))
    with pytest.raises(EncryptedDocument):
        parse(encrypted(data, n_members=2), "zip")
    secret, open_ = contained_in(parse(encrypted(data, n_members=1), "zip"))
    assert (secret.error_code, secret.sha256, open_.error_code) == ("encrypted", None, None)
    assert isinstance(secret.error("mail.zip//secret.txt"), EncryptedDocument)


def test_a_bomb_is_refused_by_its_ratio_before_it_is_unpacked(parse):
    (bomb,) = contained_in(parse(zipped(("bomb.txt", bytes(20_000_000))), "zip"))
    assert (bomb.error_code, bomb.size) == ("unpacks_too_large", None)


def test_what_would_exceed_the_total_is_refused_and_what_fits_is_not(parse, monkeypatch):
    monkeypatch.setattr(members, "MAX_CONTENT_BYTES", 1_000)
    data = zipped(("a.txt", b"a" * 600), ("b.txt", b"b" * 600), ("c.txt", b"c" * 300))
    assert [member.error_code for member in contained_in(parse(data, "zip"))] == [None, "unpacks_too_large", None]


def test_members_beyond_the_limit_are_counted_and_warned_of(parse, monkeypatch):
    monkeypatch.setattr(members, "MAX_MEMBERS", 2)
    document = parse(zipped(*((f"{n}.txt", b"x") for n in range(5))), "zip")
    assert listed(document) == ["0.txt", "1.txt"]
    assert document.warning == "partly_unreadable" and document.metadata["unreadable_parts"] == ["3 members beyond the first 2"]


def test_a_damaged_member_leaves_the_others(parse):
    data = zipped(("a.txt", b"alpha" * 50), ("b.txt", b"beta"), compression=zipfile.ZIP_STORED).replace(b"alpha", b"omega", 1)
    assert [(member.path, member.error_code) for member in contained_in(parse(data, "zip"))] == [("a.txt", "corrupt"), ("b.txt", None)]


def test_a_cut_archive_is_corrupt(parse):
    with pytest.raises(CorruptDocument):
        parse(zipped(("a.txt", b"alpha" * 1_000))[:60], "zip")


def test_names_without_the_utf_8_flag_are_read_in_the_encoding_that_they_share(parse, shared):
    assert listed(parse(shared / "files/archive/t_testZipEntryNameCharsetShiftSJIS.zip")) == ["文章1.txt", "文章2.txt"]


def test_a_member_that_is_asked_for_and_not_there_is_absent(tmp_path):
    path = tmp_path / "a.zip"
    path.write_bytes(zipped(("a.txt", b"x")))
    assert take_out_members(path, source_path="c", format=FORMATS["zip"], options=ParsingOptions(), targets={"b.txt": tmp_path / "b"}) == {}
