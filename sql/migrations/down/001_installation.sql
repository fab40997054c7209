DROP TABLE IF EXISTS original_index_counter, corpus_state, sparse_indexes, embedding_indexes, run_settings, app_settings;
DROP FUNCTION IF EXISTS refuse_spec_update();
-- The extension stays: it may serve others in this database.
