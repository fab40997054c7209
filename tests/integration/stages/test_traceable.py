"""Promise 1: from a hit's chunk_id alone, back to the bytes of the file and the settings that made it."""

import hashlib

import pytest

from stemma.library.lineage import NothingToTrace, UnknownChunk, trace
from stemma.library.listing import SupersededDocument, UnknownDocument
from stemma.store.app_settings import set_overrides

PAGE = "<html><head><title>Herons</title></head><body><h1>Herons</h1><p>A heron 𝄞 stands in the reeds.</p><p>It waits.</p></body></html>"


def lineage(corpus, identifier):
    with corpus.installation.pool.connection() as connection:
        return trace(connection, identifier).compared(corpus.settings.library)


def hits(corpus, query):
    return [chunk_id for chunk_id, _ in corpus.keyword_hits(query)]


def test_a_hit_leads_to_its_bytes_its_text_and_its_recipe(corpus):
    files = {
        "birds/heron.html": PAGE.encode(),
        "birds/notes.md": b"# Notes\n\nThe heron \xf0\x9d\x84\x9e flew off at noon.\n\n" + b"It came back late. " * 80,
        "birds/latin.txt": "Der Fischreiher (heron) steht am Ufer und wartet geduldig auf größere Fische.".encode("latin-1"),
    }
    for path, content in files.items():
        corpus.write(path, content)
    corpus.ingest()
    found = hits(corpus, "heron")
    assert {lineage(corpus, chunk_id).file.source_path for chunk_id in found} == set(files)
    for chunk_id in found:
        traced = lineage(corpus, chunk_id)
        chunk, document = traced.chunk, traced.document
        on_disk = (corpus.settings.library / traced.file.source_path).read_bytes()
        assert hashlib.sha256(on_disk).hexdigest() == traced.file.content_hash == traced.file.content_hash_on_disk
        assert traced.file.on_disk == "same"
        text = corpus.value("SELECT text FROM documents WHERE doc_id = %s", [document.doc_id])
        assert chunk.is_exact and text[chunk.char_start : chunk.char_end] == chunk.content
        assert hashlib.sha256(chunk.content.encode()).hexdigest() == chunk.text_hash
        expected = hashlib.sha256(f"{traced.file.source_path}:{traced.file.content_hash}".encode()).hexdigest()[:16]
        assert (chunk.chunk_id.partition("::")[0], document.doc_id) == (expected, expected)


def test_every_stage_shows_the_settings_that_its_run_had_frozen(corpus):
    corpus.write("a.md", "# Cranes\n\n" + "A crane dances in the meadow. " * 40)
    with corpus.installation.pool.connection() as connection:
        set_overrides(connection, corpus.settings, {"CHUNK_SIZE": "300", "CHUNK_OVERLAP": "0"})
    corpus.ingest()
    with corpus.installation.pool.connection() as connection:
        set_overrides(connection, corpus.settings, {"CHUNK_SIZE": "500"})
    traced = lineage(corpus, hits(corpus, "crane")[0])
    recipe = {stage.stage: stage for stage in traced.recipe}
    assert list(recipe) == ["parsing", "chunking", "contextualizing", "embedding", "bm25"]
    assert (recipe["chunking"].settings["CHUNK_SIZE"], recipe["chunking"].made_by) == (300, "markdown_aware")
    run_id, frozen = corpus.rows("SELECT run_id, fingerprints FROM run_settings")[0]
    assert traced.document.run_id == run_id
    assert {stage: found.fingerprint for stage, found in recipe.items()} == frozen
    assert recipe["embedding"].made_by.startswith("minilm revision ") and "384 dimensions" in recipe["embedding"].made_by
    assert recipe["bm25"].made_by.endswith(f"{traced.document.n_chunks} entries")


def test_what_became_of_the_file_is_told(corpus):
    path = corpus.write("a.txt", "A grebe dives.")
    corpus.ingest()
    [chunk_id] = hits(corpus, "grebe")
    path.write_text("A grebe surfaces.")
    changed = lineage(corpus, chunk_id)
    assert (changed.file.on_disk, changed.chunk.content) == ("changed", "A grebe dives.")
    assert changed.file.content_hash_on_disk == hashlib.sha256(b"A grebe surfaces.").hexdigest()
    path.unlink()
    assert lineage(corpus, chunk_id).file.on_disk == "gone"
    path.symlink_to("/etc/hostname")
    assert lineage(corpus, chunk_id).file.on_disk == "gone"


def test_an_id_that_leads_nowhere_is_refused_by_its_kind(corpus):
    corpus.write("a.txt", "A coot swims.")
    corpus.write("bad.docx", b"PK\x03\x04 broken")
    corpus.ingest()
    [old] = hits(corpus, "coot")
    corpus.write("a.txt", "A coot runs.")
    corpus.ingest()
    with pytest.raises(SupersededDocument):
        lineage(corpus, old)
    live = corpus.value("SELECT doc_id FROM documents")
    with pytest.raises(UnknownChunk):
        lineage(corpus, f"{live}::99")
    with pytest.raises(UnknownDocument):
        lineage(corpus, f"{'0' * 16}::0")
    with pytest.raises(NothingToTrace):
        lineage(corpus, str(corpus.value("SELECT source_id FROM sources WHERE source_path = 'bad.docx'")))
    assert lineage(corpus, live).chunk is None
