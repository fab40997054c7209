"""`/api/conversations` and `/api/conversation-groups`: listed by recency, moved and renamed in place, deleted whole."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from uuid import uuid4

import pytest

from stemma.chat.conversations import create_conversation
from stemma.chat.messages import HISTORY_MAX_CHARS, Turn, append_turn, read_history, title_of
from stemma.store.postgres import connect


@pytest.fixture(scope="module", autouse=True)
def published(corpus):
    return corpus.publish("history/a.md", "one passage"), corpus.publish("history/b.md", "another passage")


def make(client, **body) -> dict:
    response = client.post("/api/conversations", json=body)
    assert response.status_code == 201, response.text
    return response.json()


def turn(question: str) -> Turn:
    now = datetime.now(UTC)
    return Turn(
        question=question, question_parts={}, asked_at=now, answer=f"answer to {question}", answered_at=now, evidence=[], citations=[],
        retrieval_method="bm25", latency_ms={}, reasoning=None, condensed_query=None, chat_engine="simple", target_corpus=None, model=None,
    )  # fmt: skip


def test_a_new_conversation_has_a_title_of_its_own_and_the_whole_library(client):
    made = make(client)
    assert (made["title"], made["source_scope"], made["document_ids"], made["group_id"], made["n_messages"]) == (
        "New chat",
        None,
        [],
        None,
        0,
    )
    assert make(client, title="  Leave  ")["title"] == "Leave"


@pytest.mark.parametrize("title", ["", "   ", "x" * 501])
def test_a_title_that_is_none_is_refused(client, title):
    response = client.post("/api/conversations", json={"title": title})
    assert (response.status_code, response.json()["code"]) == (422, "invalid_request")


def test_moving_and_renaming_leave_the_order_and_a_turn_changes_it(client, module_database_url):
    group = client.post("/api/conversation-groups", json={"name": "Research"}).json()
    older, newer = make(client, title="older"), make(client, title="newer")
    moved = client.patch(f"/api/conversations/{older['conversation_id']}", json={"title": "renamed", "group_id": group["group_id"]}).json()
    assert (moved["title"], moved["group_id"], moved["updated_at"]) == ("renamed", group["group_id"], older["updated_at"])
    listed = [one["conversation_id"] for one in client.get("/api/conversations").json()["conversations"]]
    assert listed[:2] == [newer["conversation_id"], older["conversation_id"]]
    with connect(module_database_url) as connection, connection.transaction():
        append_turn(connection, older["conversation_id"], turn("a question"))
    listed = client.get("/api/conversations").json()["conversations"]
    assert (listed[0]["conversation_id"], listed[0]["title"], listed[0]["n_messages"]) == (older["conversation_id"], "renamed", 2)


def test_pages_add_up_to_every_conversation_once(client):
    made = {make(client)["conversation_id"] for _ in range(5)}
    seen, cursor = [], None
    while True:
        page = client.get("/api/conversations", params={"limit": 2} | ({"cursor": cursor} if cursor else {})).json()
        seen += [one["conversation_id"] for one in page["conversations"]]
        if (cursor := page["next_cursor"]) is None:
            break
    assert len(seen) == len(set(seen)) and made <= set(seen)
    assert client.get("/api/conversations", params={"cursor": "yesterday"}).json()["code"] == "invalid_cursor"


def test_a_deleted_group_leaves_its_conversations_ungrouped_and_whole(client, module_database_url):
    group = client.post("/api/conversation-groups", json={"name": "Research"}).json()
    made = make(client, group_id=group["group_id"])
    with connect(module_database_url) as connection, connection.transaction():
        append_turn(connection, made["conversation_id"], turn("a question"))
    assert [
        one["conversation_id"] for one in client.get("/api/conversations", params={"group": group["group_id"]}).json()["conversations"]
    ] == [made["conversation_id"]]
    renamed = client.patch(f"/api/conversation-groups/{group['group_id']}", json={"name": " Old "}).json()
    assert (renamed["name"], renamed["n_conversations"]) == ("Old", 1)
    assert client.delete(f"/api/conversation-groups/{group['group_id']}").status_code == 204
    kept = client.get(f"/api/conversations/{made['conversation_id']}").json()
    assert (kept["group_id"], kept["n_messages"], kept["title"]) == (None, 2, "a question")
    for method, path in [("PATCH", "conversation-groups"), ("DELETE", "conversation-groups")]:
        response = client.request(method, f"/api/{path}/{group['group_id']}", json={"name": "x"} if method == "PATCH" else None)
        assert (response.status_code, response.json()["code"]) == (404, "unknown_group")


def test_a_deleted_conversation_takes_its_messages_along(client, corpus, module_database_url):
    made = make(client)
    with connect(module_database_url) as connection, connection.transaction():
        append_turn(connection, made["conversation_id"], turn("a question"))
    assert client.delete(f"/api/conversations/{made['conversation_id']}").status_code == 204
    left = corpus.connection.execute("SELECT count(*) FROM messages WHERE conversation_id = %s", [made["conversation_id"]]).fetchone()
    corpus.connection.rollback()
    assert left == (0,)
    assert client.get(f"/api/conversations/{made['conversation_id']}/messages").json()["code"] == "unknown_conversation"


def test_a_scope_keeps_documents_by_their_source_and_is_found_by_them(client, published):
    one, other = published
    made = make(client, source_scope={"documents": [one.doc_id, other.source_id]})
    assert sorted(made["source_scope"]["documents"]) == sorted([one.source_id, other.source_id]) == sorted(made["document_ids"])
    assert made["document_id"] is None
    found = client.get("/api/conversations", params={"document": one.doc_id}).json()["conversations"]
    assert [conversation["conversation_id"] for conversation in found] == [made["conversation_id"]]
    narrowed = client.patch(f"/api/conversations/{made['conversation_id']}", json={"source_scope": {"documents": [one.source_id]}}).json()
    assert narrowed["document_id"] == one.source_id
    assert client.patch(f"/api/conversations/{made['conversation_id']}", json={"source_scope": None}).json()["source_scope"] is None
    assert client.patch(f"/api/conversations/{made['conversation_id']}", json={"source_scope": {}}).json()["source_scope"] == {}


def test_turns_appended_at_once_queue_up_without_gaps_or_doubles(client, module_database_url):
    made = make(client)

    def append(number: int) -> None:
        with connect(module_database_url) as connection, connection.transaction():
            append_turn(connection, made["conversation_id"], turn(f"question {number}"))

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(append, range(12)))
    first = client.get(f"/api/conversations/{made['conversation_id']}/messages", params={"limit": 10}).json()
    second = client.get(f"/api/conversations/{made['conversation_id']}/messages", params={"cursor": first["next_cursor"]}).json()
    stored = first["messages"] + second["messages"]
    assert [message["turn_index"] for message in stored] == list(range(24))
    for asked, answered in zip(stored[::2], stored[1::2], strict=True):
        assert answered["content"] == f"answer to {asked['content']}"


def test_a_turn_that_fails_in_the_middle_leaves_nothing(module_database_url):
    with connect(module_database_url) as connection:
        conversation_id = create_conversation(connection, now=datetime.now(UTC))
        connection.commit()
        with pytest.raises(ZeroDivisionError), connection.transaction():
            append_turn(connection, conversation_id, turn("a question"))
            raise ZeroDivisionError
        found = connection.execute(
            "SELECT title, created_at = updated_at, (SELECT count(*) FROM messages WHERE conversation_id = c.conversation_id)"
            " FROM conversations AS c WHERE conversation_id = %s",
            [conversation_id],
        ).fetchone()
    assert found == ("New chat", True, 0)


def test_a_long_history_is_trimmed_for_the_model_alone(module_database_url):
    with connect(module_database_url) as connection:
        conversation_id = create_conversation(connection, now=datetime.now(UTC))
        for number in range(4):
            append_turn(connection, conversation_id, turn(f"{number} " + "word " * (HISTORY_MAX_CHARS // 20)))
        history = read_history(connection, conversation_id)
        assert history.trimmed_to is not None and history.trimmed_to[1] > 0
        assert sum(len(said.content) for said in history.said) <= HISTORY_MAX_CHARS
        append_turn(connection, conversation_id, turn("the last"), trimmed_to=history.trimmed_to)
        # what was trimmed stays trimmed even if the message it was trimmed to is gone
        connection.execute("DELETE FROM messages WHERE message_id = %s", [history.trimmed_to[0]])
        again = read_history(connection, conversation_id)
        assert again.said[-1].content == "answer to the last"
        assert not any(said.content.startswith("0 ") for said in again.said)


def test_which_conversations_use_a_document_is_asked_of_an_index(module_database_url):
    with connect(module_database_url) as connection, connection.transaction(force_rollback=True):
        connection.execute(
            "INSERT INTO conversations (conversation_id, workspace_id, document_ids)"
            " SELECT 'many' || i, (SELECT min(workspace_id) FROM workspaces), ARRAY[gen_random_uuid()] FROM generate_series(1, 5000) AS i"
        )
        connection.execute("ANALYZE conversations")
        plan = connection.execute("EXPLAIN SELECT 1 FROM conversations WHERE document_ids @> %s::uuid[]", [[uuid4()]]).fetchall()
        assert "conversations_document_ids_idx" in str(plan)


def test_a_title_is_the_beginning_of_the_question():
    assert title_of("  How\n often? ") == "How often?"
    assert title_of("word " * 40).endswith(" word…") and len(title_of("word " * 40)) <= 80
    assert title_of("x" * 200) == "x" * 79 + "…"
