-- What was asked and answered. History outlives what it speaks of: it has no foreign key into the corpus, keeps evidence and quotes as they were
-- when they were shown, and is marked, not changed, when a document is deleted. A workspace is the owner, not the corpus: it takes its history along.
CREATE TABLE IF NOT EXISTS conversation_groups (
    group_id   text        CONSTRAINT conversation_groups_pk PRIMARY KEY,
    name       text        NOT NULL CONSTRAINT conversation_groups_name_ck CHECK (char_length(name) BETWEEN 1 AND 200 AND name = btrim(name)),
    created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE IF NOT EXISTS conversations (
    conversation_id          text        CONSTRAINT conversations_pk PRIMARY KEY,
    workspace_id             bigint      NOT NULL CONSTRAINT conversations_workspace_fk REFERENCES workspaces ON DELETE CASCADE,
    group_id                 text        CONSTRAINT conversations_group_fk REFERENCES conversation_groups ON DELETE SET NULL,
    title                    text        NOT NULL DEFAULT 'New chat' CONSTRAINT conversations_title_ck
                                         CHECK (char_length(title) BETWEEN 1 AND 500 AND title = btrim(title)),
    -- NULL: the whole library; {}: nothing; else the parts of a search's scope
    source_scope             jsonb       CONSTRAINT conversations_source_scope_ck CHECK (jsonb_typeof(source_scope) = 'object'),
    -- the sources that the scope names one by one, whatever their version; those that were deleted stay, so that a scope never widens
    document_ids             uuid[]      NOT NULL DEFAULT '{}',
    deleted_document_ids     uuid[]      NOT NULL DEFAULT '{}',
    document_id              uuid        GENERATED ALWAYS AS (
                                             CASE WHEN cardinality(document_ids) = 1 AND NOT document_ids <@ deleted_document_ids
                                                  THEN document_ids[1] END) STORED,
    cloud_id                 integer     CONSTRAINT conversations_cloud_id_uq UNIQUE,
    -- set: an outside agent answers, and the turns are in its session, not in messages
    agent_session_id         text,
    -- from where on the model is given the history; the index serves if that message is gone
    history_start_message_id text,
    history_start_turn_index integer,
    created_at               timestamptz NOT NULL DEFAULT now(),
    updated_at               timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT conversations_history_start_ck CHECK ((history_start_message_id IS NULL) = (history_start_turn_index IS NULL))
);
CREATE INDEX IF NOT EXISTS conversations_workspace_idx ON conversations (workspace_id);
CREATE INDEX IF NOT EXISTS conversations_group_id_idx ON conversations (group_id);
CREATE INDEX IF NOT EXISTS conversations_updated_idx ON conversations (updated_at DESC, conversation_id DESC);
CREATE INDEX IF NOT EXISTS conversations_document_ids_idx ON conversations USING gin (document_ids);

CREATE TABLE IF NOT EXISTS messages (
    message_id       text        CONSTRAINT messages_pk PRIMARY KEY,
    conversation_id  text        NOT NULL CONSTRAINT messages_conversation_fk REFERENCES conversations ON DELETE CASCADE,
    -- the order; two messages of one millisecond have none by time
    turn_index       integer     NOT NULL CONSTRAINT messages_turn_index_ck CHECK (turn_index >= 0),
    role             text        NOT NULL CONSTRAINT messages_role_ck CHECK (role IN ('user', 'assistant', 'system')),
    content          text        NOT NULL,
    -- of questions: the images and the scope they came with; whatever else an import carried
    content_parts    jsonb       NOT NULL DEFAULT '{}',
    created_at       timestamptz NOT NULL DEFAULT now(),
    -- NULL in imported rows only: the answer was broken off
    completed_at     timestamptz,
    -- how an answer was made, by value: it outlives the settings
    retrieval_method text,
    latency_ms       jsonb,
    reasoning        text,
    condensed_query  text,
    chat_engine      text,
    target_corpus    text        CONSTRAINT messages_target_corpus_ck CHECK (target_corpus IN ('rag', 'graph')),
    graph_evidence   jsonb,
    -- NULL: no model, the answer was extracted
    model            text,
    -- why the answer is less than what was asked for, a sentence each
    degraded         text[]      NOT NULL DEFAULT '{}',
    n_quotes_dropped integer     NOT NULL DEFAULT 0 CONSTRAINT messages_n_quotes_dropped_ck CHECK (n_quotes_dropped >= 0),
    CONSTRAINT messages_turn_uq UNIQUE (conversation_id, turn_index),
    CONSTRAINT messages_answer_ck CHECK (
        role = 'assistant' OR (num_nonnulls(retrieval_method, latency_ms, reasoning, condensed_query, chat_engine, target_corpus, graph_evidence, model) = 0
                               AND degraded = '{}' AND n_quotes_dropped = 0))
);
CREATE INDEX IF NOT EXISTS messages_conversation_created_idx ON messages (conversation_id, created_at);

CREATE TABLE IF NOT EXISTS message_sources (
    message_id        text        NOT NULL CONSTRAINT message_sources_message_fk REFERENCES messages ON DELETE CASCADE,
    rank              integer     NOT NULL CONSTRAINT message_sources_rank_ck CHECK (rank >= 1),
    -- what it was: soft references, which may point to nothing any more
    chunk_id          text        NOT NULL,
    source_id         uuid,
    source_deleted_at timestamptz,
    -- everything that is shown of it, as it was then
    trace             jsonb       NOT NULL,
    CONSTRAINT message_sources_pk PRIMARY KEY (message_id, rank)
);
CREATE INDEX IF NOT EXISTS message_sources_source_idx ON message_sources (source_id) WHERE source_id IS NOT NULL;

-- Quotes, each verified when it was stored: the document's text between the two offsets was the quote.
CREATE TABLE IF NOT EXISTS citations (
    message_id        text        NOT NULL CONSTRAINT citations_message_fk REFERENCES messages ON DELETE CASCADE,
    position          integer     NOT NULL CONSTRAINT citations_position_ck CHECK (position >= 1),
    marker            text        NOT NULL,
    chunk_id          text        NOT NULL,
    doc_id            text        NOT NULL,
    source_id         uuid        NOT NULL,
    source_deleted_at timestamptz,
    source_path       text        NOT NULL,
    title             text        NOT NULL,
    page_start        integer,
    page_end          integer,
    section_path      text[]      NOT NULL DEFAULT '{}',
    quote             text        NOT NULL,
    quote_char_start  integer     NOT NULL,
    quote_char_end    integer     NOT NULL,
    CONSTRAINT citations_pk PRIMARY KEY (message_id, position),
    CONSTRAINT citations_span_ck CHECK (0 <= quote_char_start AND quote <> '' AND quote_char_end - quote_char_start = char_length(quote))
);
CREATE INDEX IF NOT EXISTS citations_source_idx ON citations (source_id);
