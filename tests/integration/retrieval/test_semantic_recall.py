"""A filtered vector search keeps its hits and its recall, whichever way it is answered."""

import numpy as np
import psycopg
import pytest
from psycopg import sql
from searchable_corpus import WORDS, open_corpus

from stemma.lexical.index import Scope
from stemma.retrieval.semantic import semantic_ranking

N_DOCUMENTS, PER_DOCUMENT = 200, 100
K = 10


@pytest.fixture(scope="module")
def corpus(postgres_server, tmp_path_factory):
    """One database for the module: building the HNSW index takes longer than all searches together."""
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute("CREATE DATABASE recall TEMPLATE template_stemma")
    yield from open_corpus(postgres_server.replace("/stemma?", "/recall?"), tmp_path_factory.mktemp("home"))
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute("DROP DATABASE recall WITH (FORCE)")


@pytest.fixture(scope="module")
def vectors(corpus):
    """20,000 random vectors, 100 in each of 200 documents; their rows in the corpus."""
    random = np.random.default_rng(0).normal(size=(N_DOCUMENTS * PER_DOCUMENT, WORDS)).astype(np.float32)
    random /= np.linalg.norm(random, axis=1, keepdims=True)
    execute = corpus.connection.execute
    with corpus.connection.transaction():
        execute("INSERT INTO workspaces (key, name) VALUES ('w', 'w')")
        execute(
            """
            INSERT INTO sources (workspace_id, source_path, partition_key, disk_path, file_type)
            SELECT workspace_id, 'w/' || n, 'w/' || n, 'x', 'md' FROM workspaces, generate_series(0, %s) AS n
            """,
            [N_DOCUMENTS - 1],
        )
        execute(
            """
            INSERT INTO publications (source_id, doc_id, source_path, run_id, state)
            SELECT source_id, lpad(to_hex(substr(source_path, 3)::int), 16, '0'), source_path, 'test', 'live' FROM sources
            """
        )
        execute(
            """
            INSERT INTO documents (publication_id, doc_id, source_id, workspace_id, source_path, source, file_name, file_type, document_type,
                                   content_hash, title, text, blocks, pages, parser, parser_version, chunker, extraction, used_ocr, n_chars,
                                   n_pages, n_chunks, parsing_fingerprint, chunking_fingerprint, contextualizing_fingerprint,
                                   document_output_hash, output_hash, run_id)
            SELECT publication_id, doc_id, source_id, workspace_id, p.source_path, '', '', 'md', 'FILE', repeat('0', 64), '', '', '', '', '', '',
                   '', 'text', false, 0, 0, %s, '', '', '', '', '', 'test'
              FROM publications AS p CROSS JOIN workspaces
            """,
            [PER_DOCUMENT],
        )
        execute(
            """
            INSERT INTO chunks (publication_id, chunk_index, chunk_id, doc_id, original_index, content, contextualized_content, char_start,
                                char_end, start_line, end_line, chunk_type, n_tokens, text_hash, input_hash, metadata)
            SELECT publication_id, n, doc_id || '::' || n, doc_id, 1000000 + substr(source_path, 3)::int * 1000 + n, 'x', 'x', 0, 1, 1, 1, 'prose', 1,
                   '', '', '{}'
              FROM documents CROSS JOIN generate_series(0, %s) AS n
            """,
            [PER_DOCUMENT - 1],
        )
        keys = execute("SELECT publication_id, chunk_index FROM chunks ORDER BY original_index").fetchall()
        copy = sql.SQL("COPY {} (publication_id, chunk_index, embedding) FROM STDIN").format(
            sql.Identifier(corpus.embedding_index.vector_table)
        )
        with corpus.connection.cursor() as cursor, cursor.copy(copy) as rows:
            for (publication_id, chunk_index), vector in zip(keys, random, strict=True):
                rows.write_row([publication_id, chunk_index, str(vector.tolist())])
    corpus.connection.autocommit = True
    execute("ANALYZE")
    corpus.connection.autocommit = False
    return random


def document(number):
    return f"{number:016x}"


def nearest(vectors, query, rows):
    order = rows[np.argsort(-(vectors[rows] @ query), kind="stable")][:K]
    return [f"{document(row // PER_DOCUMENT)}::{row % PER_DOCUMENT}" for row in order]


def recall(corpus, vectors, scope_of, rows_of, *, exact_scan_max_chunks, n_queries=50):
    """Mean share of the K true neighbours in scope that come back; every query must return K rows, all of them in scope."""
    found = 0
    for number in range(n_queries):
        query, rows = vectors[number * 7], rows_of(number)
        with corpus.connection.transaction():
            ranking = semantic_ranking(
                corpus.connection, query, index=corpus.embedding_index, depth=K, scope=scope_of(number),
                exact_scan_max_chunks=exact_scan_max_chunks,
            )  # fmt: skip
        assert ranking.height == K
        assert ranking["score"].is_sorted(descending=True)
        in_scope = {f"{document(row // PER_DOCUMENT)}::{row % PER_DOCUMENT}" for row in rows}
        assert set(ranking["chunk_id"]) <= in_scope
        found += len(set(ranking["chunk_id"]) & set(nearest(vectors, query, rows)))
    return found / (n_queries * K)


def one_document(number):
    return Scope(documents=(document(number * 3 % N_DOCUMENTS),))


def rows_of_one(number):
    first = number * 3 % N_DOCUMENTS * PER_DOCUMENT
    return np.arange(first, first + PER_DOCUMENT)


def test_a_scope_under_the_bound_is_answered_exactly(corpus, vectors):
    assert recall(corpus, vectors, one_document, rows_of_one, exact_scan_max_chunks=20_000) == 1.0


@pytest.mark.parametrize("planner", ["as it likes", "hnsw only"])
def test_a_scope_over_the_bound_keeps_its_hits_and_its_recall(corpus, vectors, planner):
    if planner == "hnsw only":
        corpus.connection.execute("SET enable_seqscan = off; SET enable_sort = off; SET enable_bitmapscan = off")
        corpus.connection.commit()
    try:
        assert recall(corpus, vectors, one_document, rows_of_one, exact_scan_max_chunks=0, n_queries=20) >= 0.95
    finally:
        corpus.connection.execute("RESET ALL")
        corpus.connection.commit()


def test_the_whole_corpus_through_hnsw_keeps_its_recall(corpus, vectors):
    everything = np.arange(len(vectors))
    assert recall(corpus, vectors, lambda _: Scope(), lambda _: everything, exact_scan_max_chunks=0) >= 0.95


def test_dead_rows_cost_no_hits(corpus, vectors):  # last of those over `vectors`: it deletes nine tenths of them
    with corpus.connection.transaction():
        corpus.connection.execute("DELETE FROM documents WHERE doc_id >= %s", [document(N_DOCUMENTS // 10)])
        corpus.connection.execute("DELETE FROM publications WHERE doc_id >= %s", [document(N_DOCUMENTS // 10)])
    left = N_DOCUMENTS // 10 * PER_DOCUMENT
    for exact_scan_max_chunks in (0, 20_000):
        assert recall(
            corpus, vectors, lambda _: Scope(), lambda _: np.arange(left), exact_scan_max_chunks=exact_scan_max_chunks, n_queries=20
        ) >= 0.95  # fmt: skip


def test_a_vector_without_direction_is_near_to_nothing(corpus):
    published = corpus.publish("a.md", "zero", "one")
    with corpus.connection.transaction():
        corpus.connection.execute(
            sql.SQL("UPDATE {} SET embedding = %s WHERE publication_id = %s AND chunk_index = 0").format(
                sql.Identifier(corpus.embedding_index.vector_table)
            ),
            [np.zeros(WORDS, dtype=np.float32), published.publication_id],
        )
    for exact_scan_max_chunks in (0, 20_000):
        ranking = semantic_ranking(
            corpus.connection, corpus.embedder.embed_query("one"), index=corpus.embedding_index, depth=K,
            scope=Scope(documents=(published.doc_id,)), exact_scan_max_chunks=exact_scan_max_chunks,
        )  # fmt: skip
        assert [chunk_id.rpartition("::")[2] for chunk_id in ranking["chunk_id"]] == ["1"]
