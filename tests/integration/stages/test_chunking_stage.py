"""Strategies as the stage runs them: the embedding cache, what is published, and what makes chunks stale."""

from dataclasses import replace

import pytest

from stemma.chunking.strategies import UNITS
from stemma.embedding.sentence_transformers_embedder import UnsoundVector
from stemma.settings import SETTINGS, fingerprints
from stemma.store.app_settings import set_overrides

TEXT = (
    "The tide at Brest rises seven metres. Neap tides are weak. Spring tides come with the full moon. "
    "Bread is made of flour and water. The dough must rest. The oven must be hot. "
) * 4
TABLE = "| harbour | depth |\n| --- | --- |\n" + "".join(f"| harbour {n} | {n} metres |\n" for n in range(120))


def use(corpus, **overrides: str) -> None:
    with corpus.installation.pool.connection() as connection:
        set_overrides(connection, corpus.settings, overrides)


def n_embedded(corpus) -> int:
    return corpus.value("SELECT coalesce(sum(n_embedded), 0)::int FROM attempts")


def test_every_strategy_can_be_set():
    assert set(SETTINGS["CHUNKING_STRATEGY"].allowed.split(" | ")) == set(UNITS)


@pytest.mark.parametrize("strategy", sorted(UNITS))
def test_every_strategy_publishes_chunks_that_say_how_they_were_made(corpus, strategy):
    use(corpus, CHUNKING_STRATEGY=strategy, CHUNK_SIZE="120", CHUNK_OVERLAP="10")
    corpus.write("harbours.md", f"# Harbours\n\n{TEXT}\n\n{TABLE}")
    corpus.ingest()
    rows = corpus.rows(
        "SELECT c.content = substr(d.text, c.char_start + 1, c.char_end - c.char_start), c.metadata FROM chunks c JOIN documents d USING (publication_id)"
    )
    assert len(rows) > 3 and all(exact for exact, _ in rows)
    assert {(made["chunking_strategy"], made["chunk_size"], made["chunk_overlap"]) for _, made in rows} == {(strategy, 120, 10)}


def test_a_row_far_below_the_head_of_its_table_is_found_by_its_column(corpus):
    use(corpus, CHUNKING_STRATEGY="docling_hybrid", CHUNK_SIZE="80", CHUNK_OVERLAP="0")
    corpus.write("harbours.md", f"# Harbours\n\n{TABLE}")
    corpus.ingest()
    [(content, context)] = corpus.rows("SELECT content, context FROM chunks WHERE content LIKE '%| harbour 99 |%'")
    assert "depth" not in content and context == "Harbours > harbour | depth"


def test_semantic_chunking_again_calls_no_model(corpus):
    use(corpus, CHUNKING_STRATEGY="semantic", CHUNK_SIZE="60", CHUNK_OVERLAP="0")
    corpus.write("a.md", TEXT)
    corpus.ingest()
    before = n_embedded(corpus)
    assert before >= 6  # each sentence once, however often it occurs
    use(corpus, CHUNK_SIZE="40")
    corpus.write("copy.md", TEXT)
    [outcomes] = corpus.ingest()
    assert n_embedded(corpus) - before == sum(version.metadata["embedded"] for version in outcomes["embeddings"].versions.values())


def test_an_edit_embeds_the_sentence_that_is_new(corpus):
    use(corpus, CHUNKING_STRATEGY="semantic", CHUNK_SIZE="60", CHUNK_OVERLAP="0")
    corpus.write("a.md", TEXT)
    corpus.ingest()
    before = n_embedded(corpus)
    corpus.write("a.md", TEXT + "A zeppelin landed here.")
    [outcomes] = corpus.ingest()
    assert n_embedded(corpus) - before == 1 + outcomes["embeddings"].versions["a.md"].metadata["embedded"]


def test_sentences_without_a_sound_vector_fail_their_document_alone(corpus, monkeypatch):
    use(corpus, CHUNKING_STRATEGY="semantic", CHUNK_SIZE="60", CHUNK_OVERLAP="0")
    corpus.write("good.md", TEXT)
    corpus.write("bad.md", "The first is odd. The second is odder.")
    real = corpus.installation.embedder_of

    class Refusing:
        def __init__(self, spec):
            self.spec = spec

        def embed_passages(self, passages):
            if odd := tuple(i for i, passage in enumerate(passages) if "odd" in passage):
                raise UnsoundVector(odd)
            return real(self.spec).embed_passages(passages)

    monkeypatch.setattr(corpus.installation, "embedder_of", Refusing)
    [batch] = corpus.look().batches
    corpus.work(corpus.open(batch.batch_id))
    assert corpus.rows("SELECT source_path, status, error_code FROM sources ORDER BY source_path") == [
        ("bad.md", "failed", "embedding_missing"),
        ("good.md", "ready", None),
    ]


def test_the_model_makes_chunks_stale_where_the_meaning_cuts_and_nowhere_else(corpus):
    def chunking(strategy: str, model: str) -> str:
        settings = corpus.settings.model_copy(update={"chunking_strategy": strategy})
        return fingerprints(settings, parser_revision="p", tokenizer_revision="t", embedding_revision=model).chunking

    assert chunking("semantic", "one") != chunking("semantic", "other")
    assert chunking("markdown_aware", "one") == chunking("markdown_aware", "other")


def test_chunks_of_an_earlier_release_are_situated_without_the_heads_of_tables(corpus):
    import polars as pl

    from stemma.stages.contextualized_chunks import contextualize_chunks

    corpus.write("harbours.md", f"# Harbours\n\n{TABLE}")
    [batch] = corpus.look().batches
    run = corpus.open(batch.batch_id)
    corpus.work(run, publish=False)
    [(key, name)] = corpus.rows("SELECT key, object FROM stage_results WHERE stage = 'chunks'")
    older = corpus.installation.lake.write("chunks", corpus.installation.lake.read(name, [key]).drop("table_header"))
    with corpus.installation.pool.connection() as connection:
        connection.execute("UPDATE stage_results SET object = %s WHERE stage = 'chunks'", [older])
    outcome = contextualize_chunks(replace(run, wanted=replace(run.wanted, contextualizing="another")), run.sources())
    assert list(outcome.versions) == ["harbours.md"]
    [(key, name)] = corpus.rows("SELECT key, object FROM stage_results WHERE stage = 'contextualized_chunks' AND fingerprint = 'another'")
    assert set(corpus.installation.lake.read(name, [key]).select(pl.col("context"))["context"]) == {"Harbours"}
