"""Pictures of figures are kept, with their places in the text; taking them (again) touches nothing else."""

import hashlib
import zipfile
from email.message import EmailMessage
from io import BytesIO

import docx
import pytest
from PIL import Image

from stemma.parsing.work_folder import WorkFolder
from stemma.stages.figures import Kept, WantedPictures, forget_all_figures, keep_figures

COLOURS = {"red": (250, 0, 0), "blue": (0, 0, 250)}


def picture(colour: str) -> BytesIO:
    data = BytesIO()
    Image.new("RGB", (60, 50), COLOURS[colour]).save(data, "PNG", pnginfo=None)
    data.seek(0)
    return data


def illustrated(*colours: str, last: str = "The end.") -> bytes:
    document, data = docx.Document(), BytesIO()
    document.add_heading("Colours", 1)
    for colour in colours:
        document.add_paragraph(f"This is {colour}:")
        document.add_picture(picture(colour))
    document.add_paragraph(last)
    document.save(data)
    return data.getvalue()


@pytest.fixture
def keep(corpus):
    return lambda: keep_figures(corpus.installation.pool, corpus.installation.lake, corpus.settings, limit=10)


def figures(corpus) -> list[tuple]:
    return corpus.rows(
        "SELECT a.char_start, f.sha256, f.mime_type, f.width, f.height FROM documents JOIN document_assets AS a USING (publication_id)"
        " LEFT JOIN figures AS f USING (content_hash, picture) WHERE a.kind = 'figure' ORDER BY source_path, asset_index"
    )


def everything_else(corpus) -> list[object]:
    """What a figures-only pass may not touch: work that was done, publications, chunks, vectors, caches."""
    ((table,),) = corpus.rows("SELECT vector_table FROM embedding_indexes")
    return [
        corpus.rows("SELECT sum(n_parsed), sum(n_contexts), sum(n_embedded), count(*), max(finished_at) FROM attempts"),
        corpus.rows("SELECT publication_id, state, published_at FROM publications ORDER BY publication_id"),
        corpus.rows("SELECT xmin::text, chunk_id, input_hash FROM chunks ORDER BY chunk_id"),
        corpus.rows(f"SELECT xmin::text, publication_id, chunk_index FROM {table} ORDER BY 2, 3"),
        corpus.rows("SELECT xmin::text, input_hash FROM embedding_cache ORDER BY input_hash"),
        corpus.rows("SELECT xmin::text, source_id, stage FROM stage_state ORDER BY 2, 3"),
    ]


def test_pictures_are_kept_with_their_places_and_nothing_is_made_again_for_it(corpus, keep):
    corpus.write("colours.docx", illustrated("red", "blue"))
    corpus.ingest()
    before = everything_else(corpus)
    assert keep() == Kept(documents=1, pictures=2)
    text = corpus.value("SELECT text FROM documents")
    red, blue = figures(corpus)
    assert [text[:start].splitlines()[-1] for start, *_ in (red, blue)] == ["This is red:", "This is blue:"]
    for (_, sha256, mime_type, *size), colour in ((red, "red"), (blue, "blue")):
        data = corpus.installation.lake.picture(sha256)
        assert hashlib.sha256(data).hexdigest() == sha256 and mime_type == "image/png" and size == [60, 50]
        assert Image.open(BytesIO(data)).getpixel((5, 5)) == COLOURS[colour]
    assert keep() == Kept()
    forget_all_figures(corpus.installation.pool)
    assert keep() == Kept(documents=1, pictures=2)
    assert figures(corpus) == [red, blue]
    assert everything_else(corpus) == before
    assert not [*(corpus.settings.home / "unfinished").glob("*")]


def test_another_recipe_of_chunks_takes_no_picture_again(corpus, keep):
    corpus.write("colours.docx", illustrated("red"))
    corpus.write("copy.docx", illustrated("red"))
    corpus.ingest()
    keep()
    made_at = corpus.rows("SELECT made_at FROM figures ORDER BY 1")
    corpus.rows("INSERT INTO app_settings (key, value) VALUES ('CHUNK_SIZE', '300') RETURNING key")
    corpus.ingest()
    assert keep() == Kept()
    assert corpus.rows("SELECT made_at FROM figures ORDER BY 1") == made_at
    assert len(figures(corpus)) == 2 and None not in {sha256 for _, sha256, *_ in figures(corpus)}


def test_an_interrupted_pass_goes_on_after_the_last_picture(corpus, keep):
    data = illustrated("red", "blue")
    corpus.write("colours.docx", data)
    corpus.ingest()
    wanted = WantedPictures("colours.docx", b"colours.docx", hashlib.sha256(data).hexdigest(), [])
    folder = wanted.folder(corpus.settings.home)
    record = {"sha256": hashlib.sha256(b"kept").hexdigest(), "mime_type": "image/png", "width": 1, "height": 1}
    folder.mkdir(parents=True)
    (folder / record["sha256"]).write_bytes(b"kept")  # what no picture of the file is: it shows that the first was not taken again
    WorkFolder(folder).keep([record], first=0)
    assert keep() == Kept(documents=1, pictures=2)
    assert record["sha256"] in {sha256 for _, sha256, *_ in figures(corpus)}


def test_a_file_that_changed_waits_for_its_next_version(corpus, keep):
    corpus.write("colours.docx", illustrated("red"))
    corpus.ingest()
    corpus.write("colours.docx", illustrated("red", last="Changed."))
    assert keep() == Kept()
    corpus.ingest()
    assert keep() == Kept(documents=1, pictures=1)


def test_a_picture_that_cannot_be_shown_is_decided_once(corpus, keep):
    broken = BytesIO()
    with zipfile.ZipFile(BytesIO(illustrated("red"))) as sound, zipfile.ZipFile(broken, "w") as target:
        for name in sound.namelist():
            target.writestr(name, sound.read(name).replace(b"IHDR", b"IHDX"))
    corpus.write("colours.docx", broken.getvalue())
    corpus.ingest()
    assert keep() == Kept(documents=1)
    assert figures(corpus)[0][1:] == (None, None, None, None)
    assert keep() == Kept()


def test_pictures_leave_with_the_last_document_that_shows_them(corpus, keep):
    for name in ("a.docx", "b.docx"):
        corpus.write(name, illustrated("red"))
    corpus.ingest()
    keep()
    ((sha256,),) = corpus.rows("SELECT DISTINCT sha256 FROM figures")
    corpus.write("a.docx", illustrated(last="No picture."))
    corpus.ingest()
    keep()
    assert corpus.installation.lake.picture(sha256)
    corpus.write("b.docx", illustrated(last="None either."))
    corpus.ingest()
    keep()
    assert not corpus.installation.lake.holds(f"figures/{sha256}") and corpus.value("SELECT count(*) FROM figures") == 0


def test_pictures_of_attachments_are_kept_like_those_of_files(corpus, keep):
    inner, outer = EmailMessage(), EmailMessage()
    for message, colour in ((inner, "blue"), (outer, "red")):
        message["From"], message["Subject"] = "ann@example.org", colour
        message.set_content("See what is attached.")
        message.add_attachment(illustrated(colour), maintype="application", subtype="octet-stream", filename=f"{colour}.docx")
    outer.add_attachment(inner, filename="inner.eml")
    corpus.write("outer.eml", outer.as_bytes())
    corpus.ingest()
    assert keep() == Kept(documents=2, pictures=2)
    shown = [Image.open(BytesIO(corpus.installation.lake.picture(sha256))).getpixel((5, 5)) for _, sha256, *_ in figures(corpus)]
    assert shown == [COLOURS["blue"], COLOURS["red"]]  # outer.eml//inner.eml//blue.docx, outer.eml//red.docx
    assert keep() == Kept() and not [*(corpus.settings.home / "unfinished").glob("*")]
    forget_all_figures(corpus.installation.pool)
    corpus.write("outer.eml", inner.as_bytes())  # not yet looked at: what was published lies there no more
    assert keep() == Kept()
    assert len(figures(corpus)) == 2 and not [*(corpus.settings.home / "unfinished").glob("*")]
