-- name: insert_conversation
-- A conversation; its documents are those that its scope names.
INSERT INTO conversations (conversation_id, workspace_id, group_id, title, source_scope, document_ids, created_at, updated_at)
SELECT %(conversation_id)s, w.workspace_id, %(group_id)s, %(title)s, %(source_scope)s, %(document_ids)s, %(now)s, %(now)s
  FROM workspaces AS w WHERE w.key = %(workspace)s
RETURNING conversation_id;

-- name: read_conversations
-- Conversations, the one with the latest turn first: a page after a cursor, of one group or workspace, those that use a document, or one alone.
SELECT c.conversation_id, w.key AS workspace, c.group_id, c.title, c.source_scope, c.document_ids, c.deleted_document_ids, c.document_id,
       c.agent_session_id, c.history_start_message_id, c.history_start_turn_index, c.created_at, c.updated_at,
       (SELECT count(*) FROM messages AS m WHERE m.conversation_id = c.conversation_id)::integer AS n_messages,
       (SELECT m.target_corpus FROM messages AS m WHERE m.conversation_id = c.conversation_id AND m.role = 'assistant'
         ORDER BY m.turn_index DESC LIMIT 1) AS target_corpus
  FROM conversations AS c
  JOIN workspaces AS w USING (workspace_id)
 WHERE (%(conversation_id)s::text IS NULL OR c.conversation_id = %(conversation_id)s)
   AND (%(workspace)s::text IS NULL OR w.key = %(workspace)s)
   AND (%(group_id)s::text IS NULL OR c.group_id = %(group_id)s)
   AND (NOT %(ungrouped)s OR c.group_id IS NULL)
   AND (%(document_ids)s::uuid[] IS NULL OR c.document_ids @> %(document_ids)s::uuid[])
   AND (%(after_at)s::timestamptz IS NULL OR (c.updated_at, c.conversation_id) < (%(after_at)s::timestamptz, %(after_id)s::text))
 ORDER BY c.updated_at DESC, c.conversation_id DESC
 LIMIT %(limit)s;

-- name: update_conversation
-- Title, group or scope; its place in the list stays.
UPDATE conversations
   SET title = coalesce(%(title)s, title),
       group_id = CASE WHEN %(moved)s THEN %(group_id)s ELSE group_id END,
       source_scope = CASE WHEN %(rescoped)s THEN %(source_scope)s ELSE source_scope END,
       document_ids = CASE WHEN %(rescoped)s THEN %(document_ids)s ELSE document_ids END,
       deleted_document_ids = CASE WHEN %(rescoped)s THEN '{}' ELSE deleted_document_ids END
 WHERE conversation_id = %(conversation_id)s
RETURNING conversation_id;

-- name: lock_conversation
-- One turn is appended to a conversation at a time.
SELECT conversation_id FROM conversations WHERE conversation_id = %(conversation_id)s FOR UPDATE;

-- name: last_turn_index
-- Of the latest message; asked once the conversation is held, so that it is what the turn before left.
SELECT coalesce(max(turn_index), -1) FROM messages WHERE conversation_id = %(conversation_id)s;

-- name: hold_sources
-- No deletion of these begins before the transaction ends.
SELECT source_id FROM sources WHERE source_id = ANY(%(source_ids)s) ORDER BY source_id FOR SHARE;

-- name: insert_message
-- One message.
INSERT INTO messages (message_id, conversation_id, turn_index, role, content, content_parts, created_at, completed_at, retrieval_method, latency_ms,
                      reasoning, condensed_query, chat_engine, target_corpus, graph_evidence, model, degraded, n_quotes_dropped)
VALUES (%(message_id)s, %(conversation_id)s, %(turn_index)s, %(role)s, %(content)s, %(content_parts)s, %(created_at)s, %(completed_at)s,
        %(retrieval_method)s, %(latency_ms)s, %(reasoning)s, %(condensed_query)s, %(chat_engine)s, %(target_corpus)s, %(graph_evidence)s,
        %(model)s, %(degraded)s, %(n_quotes_dropped)s);

-- name: insert_message_sources
-- The evidence of an answer; a source that was deleted while the answer was written is marked at once.
INSERT INTO message_sources (message_id, rank, chunk_id, source_id, source_deleted_at, trace)
SELECT %(message_id)s, e.rank, e.chunk_id, e.source_id, CASE WHEN s.source_id IS NULL OR s.deletion_intent IS NOT NULL THEN %(now)s END, e.trace
  FROM unnest(%(ranks)s::integer[], %(chunk_ids)s::text[], %(source_ids)s::uuid[], %(traces)s::jsonb[]) AS e (rank, chunk_id, source_id, trace)
  LEFT JOIN sources AS s ON s.source_id = e.source_id;

-- name: insert_citation
-- A verified quote.
INSERT INTO citations (message_id, position, marker, chunk_id, doc_id, source_id, source_deleted_at, source_path, title, page_start, page_end,
                       section_path, quote, quote_char_start, quote_char_end)
SELECT %(message_id)s, %(position)s, %(marker)s, %(chunk_id)s, %(doc_id)s, c.source_id,
       CASE WHEN s.source_id IS NULL OR s.deletion_intent IS NOT NULL THEN %(now)s::timestamptz END, %(source_path)s, %(title)s, %(page_start)s,
       %(page_end)s, %(section_path)s, %(quote)s, %(quote_char_start)s, %(quote_char_end)s
  FROM (SELECT %(source_id)s::uuid AS source_id) AS c
  LEFT JOIN sources AS s USING (source_id);

-- name: touch_conversation
-- A turn was added: the conversation comes to the front, under its first question's title if it has none of its own.
UPDATE conversations
   SET updated_at = greatest(updated_at, %(now)s), title = CASE WHEN title = 'New chat' THEN coalesce(%(title)s, title) ELSE title END
 WHERE conversation_id = %(conversation_id)s;

-- name: trim_history
-- From this message on, the model is given the history.
UPDATE conversations SET history_start_message_id = %(message_id)s, history_start_turn_index = %(turn_index)s
 WHERE conversation_id = %(conversation_id)s;

-- name: read_messages
-- A page of a conversation's messages, in their order.
SELECT message_id, conversation_id, turn_index, role, content, content_parts, created_at, completed_at, retrieval_method, latency_ms, reasoning,
       condensed_query, chat_engine, target_corpus, graph_evidence, model, degraded, n_quotes_dropped
  FROM messages
 WHERE conversation_id = %(conversation_id)s AND turn_index > %(after)s
 ORDER BY turn_index
 LIMIT %(limit)s;

-- name: read_history
-- What the model is given of a conversation, the latest first.
SELECT m.message_id, m.turn_index, m.role, m.content
  FROM messages AS m
  JOIN conversations AS c USING (conversation_id)
 WHERE m.conversation_id = %(conversation_id)s AND m.turn_index >= coalesce(c.history_start_turn_index, 0) AND m.completed_at IS NOT NULL
 ORDER BY m.turn_index DESC
 LIMIT %(limit)s;

-- name: read_message_sources
-- The evidence of some answers, and the version under which each document is live now.
SELECT e.message_id, e.rank, e.chunk_id, e.source_id, CASE WHEN d.source_id IS NULL THEN e.source_deleted_at END AS source_deleted_at, e.trace,
       d.doc_id AS present_doc_id
  FROM message_sources AS e
  LEFT JOIN documents AS d USING (source_id)
 WHERE e.message_id = ANY(%(message_ids)s)
 ORDER BY e.message_id, e.rank;

-- name: read_citations
-- The quotes of some answers, and the version under which each document is live now.
SELECT c.message_id, c.position, c.marker, c.chunk_id, c.doc_id, c.source_id,
       CASE WHEN d.source_id IS NULL THEN c.source_deleted_at END AS source_deleted_at, c.source_path, c.title, c.page_start, c.page_end,
       c.section_path, c.quote, c.quote_char_start, c.quote_char_end, d.doc_id AS present_doc_id
  FROM citations AS c
  LEFT JOIN documents AS d USING (source_id)
 WHERE c.message_id = ANY(%(message_ids)s)
 ORDER BY c.message_id, c.position;

-- name: mark_evidence
-- Evidence whose source is being deleted. It keeps what it shows.
UPDATE message_sources SET source_deleted_at = %(now)s WHERE source_id = ANY(%(source_ids)s);

-- name: mark_citations
-- Quotes whose source is being deleted. They keep what they show.
UPDATE citations SET source_deleted_at = %(now)s WHERE source_id = ANY(%(source_ids)s);

-- name: mark_scopes
-- Conversations whose scope names a source that is being deleted: the name stays in the scope, since without it the scope would widen.
UPDATE conversations AS c
   SET deleted_document_ids = ARRAY(SELECT DISTINCT id FROM unnest(c.deleted_document_ids || gone.source_ids) AS id ORDER BY id)
  FROM (SELECT c.conversation_id, array_agg(s.source_id) AS source_ids
          FROM unnest(%(source_ids)s::uuid[]) AS s (source_id)
          JOIN conversations AS c ON c.document_ids @> ARRAY[s.source_id]
         GROUP BY c.conversation_id) AS gone
 WHERE c.conversation_id = gone.conversation_id;

-- name: scope_documents
-- The published documents in a scope, by id: how many there are, and a hash of which they are.
SELECT count(*)::integer AS count, encode(sha256(convert_to(coalesce(string_agg(d.source_id::text, E'\n' ORDER BY d.source_id), ''), 'UTF8')), 'hex') AS ids_sha256
  FROM documents AS d
  JOIN workspaces AS w ON w.workspace_id = d.workspace_id
 WHERE {in_scope};

-- name: file_clocks
-- What a hit does not carry of its document, by publication.
SELECT publication_id, file_name, file_created_at, file_modified_at FROM documents WHERE publication_id = ANY(%(publication_ids)s);

-- name: sources_named
-- The sources that some names stand for: source_ids, or doc_ids of live versions.
SELECT name, s.source_id FROM unnest(%(names)s::text[]) AS name JOIN sources AS s ON s.source_id::text = lower(name)
UNION
SELECT name, d.source_id FROM unnest(%(names)s::text[]) AS name JOIN documents AS d ON d.doc_id = lower(name);

-- name: list_groups
-- Groups by name, with how many conversations each holds.
SELECT g.group_id, g.name, g.created_at, (SELECT count(*) FROM conversations AS c WHERE c.group_id = g.group_id)::integer AS n_conversations
  FROM conversation_groups AS g
 WHERE (%(group_id)s::text IS NULL OR g.group_id = %(group_id)s)
 ORDER BY lower(g.name), g.group_id;

-- name: insert_group
-- A group.
INSERT INTO conversation_groups (group_id, name, created_at) VALUES (%(group_id)s, %(name)s, %(now)s);

-- name: rename_group
-- Another name.
UPDATE conversation_groups SET name = %(name)s WHERE group_id = %(group_id)s RETURNING group_id;

-- name: delete_group
-- Its conversations return to the ungrouped ones.
DELETE FROM conversation_groups WHERE group_id = %(group_id)s RETURNING group_id;

-- name: delete_conversation
-- With its messages, their evidence and quotes.
DELETE FROM conversations WHERE conversation_id = %(conversation_id)s RETURNING conversation_id;
