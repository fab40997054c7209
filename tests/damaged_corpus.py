"""Ways to damage what is stored, each named after the promise that it breaks: what an audit must find and a repair mend."""

TEXT = "# Tides\n\nThe moon pulls the sea.\n\n## Springs\n\nAt full and new moon the range is greatest.\n"

DAMAGE = {
    "live_without_document": "DELETE FROM documents WHERE source_path = 'sea/tides.md'",
    "document_not_live": "UPDATE publications SET state = 'superseded' WHERE source_path = 'sea/tides.md' AND state = 'live'",
    "chunks_not_dense": "DELETE FROM chunks WHERE chunk_index = 0 AND doc_id IN (SELECT doc_id FROM documents WHERE source_path = 'sea/tides.md')",
    "chunk_hash_differs": "UPDATE chunks SET text_hash = 'x' WHERE chunk_index = 0 AND content LIKE '%%moon pulls%%'",
    "offsets_differ": "UPDATE chunks SET char_start = char_start + 1, char_end = char_end + 1 WHERE content LIKE '%%moon pulls%%'",
    "vector_missing": "DELETE FROM chunk_vectors_1 WHERE chunk_index = 0",
    "vector_differs": "UPDATE chunk_vectors_1 SET embedding = (SELECT embedding FROM chunk_vectors_1 ORDER BY publication_id DESC, chunk_index LIMIT 1)",
    "cached_vector_damaged": "UPDATE embedding_cache SET embedding = '[1,2]'",
    "active_index_differs": "UPDATE embedding_indexes SET state = 'retired'",
    "original_index_reused": "UPDATE original_index_counter SET next = 0",
    "status_differs": "UPDATE sources SET status = 'processing' WHERE source_path = 'empty.txt'",
    "recorded_corpus_differs": "UPDATE stage_state SET output_hash = 'x' WHERE stage = 'corpus'",
    "stale": "UPDATE stage_state SET fingerprint = 'x' WHERE stage = 'chunks'",
    "lake_object_missing": "UPDATE stage_results SET object = 'chunks/gone.parquet' WHERE stage = 'chunks'",
}
