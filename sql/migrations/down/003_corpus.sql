DROP VIEW IF EXISTS document_provenance;
DROP TABLE IF EXISTS context_cache, embedding_cache, stage_results;
-- The vector tables of embedding indexes hang on chunks and go with them.
DO $$ DECLARE vector_table text; BEGIN
    FOR vector_table IN SELECT i.vector_table FROM embedding_indexes AS i LOOP
        EXECUTE format('DROP TABLE IF EXISTS %I', vector_table);
    END LOOP;
END $$;
UPDATE corpus_state SET active_embedding_index = NULL, active_sparse_index = NULL;
DELETE FROM embedding_indexes;
DROP TABLE IF EXISTS chunks, document_assets, documents, sparse_coverage, publications;
DELETE FROM sparse_indexes;
DROP FUNCTION IF EXISTS chunk_tsvector(text[], text);
DROP FUNCTION IF EXISTS heading_trail(text[]);
