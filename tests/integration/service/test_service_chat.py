"""`POST /api/chat`: events, verified quotes, follow-ups, and turns that are stored whole or not at all."""

import json
from contextlib import contextmanager
from datetime import UTC, datetime
from uuid import UUID

import anyio
import pytest
from scripted_llm import Reply, scripted_llm

from stemma.library.deletion import mark_deleting


@pytest.fixture(scope="module", autouse=True)
def published(corpus):
    """Two documents; the first has an older version."""
    first = corpus.publish("chat/backups.md", "Backups were tested every year.")
    second = corpus.publish(
        "chat/backups.md",
        "Backups are tested every month. Maria does it.",
        "Restores are timed with a stopwatch.",
        source_id=first.source_id,
    )
    leave = corpus.publish("chat/leave.md", "Five days of leave carry over. They lapse in March.")
    return {"backups": second, "leave": leave}


@pytest.fixture
def llm(client):
    """The running service with a language model that answers by a script."""
    service = client.app.state.service
    before = service.settings
    with scripted_llm() as server:
        service.settings = before.model_copy(update={"llm_url": server.url, "llm_attempts": 1})
        yield server
    service.settings = before


def events_of(response) -> list[tuple[str, dict]]:
    told = []
    for block in response.text.strip().split("\n\n"):
        name, data = block.split("\n")
        told.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return told


def ask(client, question, **body) -> dict:
    """The events of a turn: the last of each name, and the whole text under `text`."""
    response = client.post("/api/chat", json={"question": question, "method": "bm25", **body})
    assert response.status_code == 200, response.text
    told = events_of(response)
    return dict(told) | {"text": "".join(data["text"] for name, data in told if name == "token"), "names": [name for name, _ in told]}


def messages(client, conversation_id) -> list[dict]:
    return client.get(f"/api/conversations/{conversation_id}/messages").json()["messages"]


def test_without_a_model_the_best_passages_are_quoted_and_the_answer_says_why(client, published):
    turn = ask(client, "How often are backups tested?")
    assert turn["names"] == ["retrieval", "token", "citations", "done"]
    assert turn["text"].startswith("No language model is configured")
    citation = turn["citations"]["citations"][0]
    text = client.get(f"/api/documents/{citation['doc_id']}/text").text
    assert (
        text[citation["quote_char_start"] : citation["quote_char_end"]]
        == citation["quote"]
        == "Backups are tested every month. Maria does it."
    )
    assert citation["marker"] in turn["text"] and citation["source_id"] == published["backups"].source_id


def test_a_turn_reads_after_a_reload_as_it_was_told(client):
    turn = ask(client, "How many days of leave carry over?", source_scope={"documents": [], "folders": None}, k=3)
    assert turn["retrieval"]["sources"] == []
    turn = ask(client, "How many days of leave carry over?", source_scope={"folders": ["chat"]}, k=3)
    question, answer = messages(client, turn["done"]["conversation_id"])
    assert (question["role"], question["turn_index"], answer["role"], answer["turn_index"]) == ("user", 0, "assistant", 1)
    assert question["content_parts"]["source_scope"]["folders"] == ["chat"]
    assert question["content_parts"]["source_scope"]["resolved"]["count"] == 2
    assert answer["content"] == turn["text"]
    assert answer["sources"] == turn["retrieval"]["sources"]
    assert answer["citations"] == turn["citations"]["citations"]
    assert answer["latency_ms"] == turn["done"]["latency_ms"] and answer["latency_ms"].keys() == {"retrieval", "generation", "total"}
    assert (answer["retrieval_method"], answer["chat_engine"], answer["model"], answer["completed_at"] is None) == (
        "bm25",
        "condense",
        None,
        False,
    )
    shown = answer["sources"][0]["trace"]
    assert shown["trace"]["bm25_rank"] == 1
    assert {
        "score",
        "content",
        "context",
        "source",
        "file_name",
        "file_type",
        "page",
        "extraction",
        "file_created_at",
        "file_modified_at",
    } < shown.keys()


def test_a_quote_that_is_not_in_the_document_is_dropped_and_counted_and_never_shown(client, published, llm):
    chunk_id = published["backups"].chunk_ids[0]
    llm.say(Reply(f'They run "every month" [citation:{chunk_id}], "by a secret robot" [citation:{chunk_id}] and so on [citation:beef::9].'))
    turn = ask(client, "How often are backups tested?")
    assert turn["text"] == f'They run "every month" [citation:{chunk_id}],  and so on .'
    assert [citation["quote"] for citation in turn["citations"]["citations"]] == ["every month"]
    assert turn["citations"]["n_quotes_dropped"] == 2
    answer = messages(client, turn["done"]["conversation_id"])[1]
    assert (answer["content"], answer["n_quotes_dropped"], answer["model"]) == (turn["text"], 2, "default")
    (citation,) = answer["citations"]
    text = client.get(f"/api/documents/{citation['doc_id']}/text").text
    assert text[citation["quote_char_start"] : citation["quote_char_end"]] == "every month"


def test_a_follow_up_is_condensed_and_the_fallback_is_recorded(client, llm):
    llm.say("First answer.")
    first = ask(client, "How often are backups tested?")
    conversation_id = first["done"]["conversation_id"]
    llm.say("Who tests backups?", Reply("She does.", reasoning="Let me see."))
    second = ask(client, "And who does it?", conversation_id=conversation_id)
    assert second["retrieval"]["condensed_query"] == second["retrieval"]["query"] == "Who tests backups?"
    llm.say(Reply(status=500))
    third = ask(client, "And when are restores timed?", conversation_id=conversation_id)
    assert third["retrieval"]["condensed_query"] is None and third["text"].startswith(
        "The language model did not answer (llm_unavailable)."
    )
    stored = messages(client, conversation_id)
    assert [message["turn_index"] for message in stored] == list(range(6))
    assert [message["condensed_query"] for message in stored[1::2]] == [None, "Who tests backups?", None]
    assert stored[3]["reasoning"] == "Let me see."
    assert stored[5]["degraded"] == [
        "The follow-up was searched as it was asked (llm_unavailable).",
        "The language model did not answer (llm_unavailable). The best passages are quoted instead.",
    ]


def test_a_model_is_given_the_history_as_text_and_the_passages_once(client, published, llm):
    chunk_id = published["backups"].chunk_ids[0]
    llm.say(f'"every month" [citation:{chunk_id}]')
    conversation_id = ask(client, "How often are backups tested?")["done"]["conversation_id"]
    ask(client, "Thanks. How many days of leave carry over?", conversation_id=conversation_id, engine="simple")
    (system, question, answer, last) = llm.requests[-1]["messages"]
    assert [message["role"] for message in (system, question, answer, last)] == ["system", "user", "assistant", "user"]
    assert question["content"] == "How often are backups tested?"
    assert "Passages:" in last["content"] and last["content"].endswith("Question: Thanks. How many days of leave carry over?")


def test_a_model_that_ends_in_the_middle_ends_the_turn_and_nothing_is_stored(client, corpus, llm):
    llm.say(Reply("one two three four", cut_after=2))
    before = counts(corpus)
    response = client.post("/api/chat", json={"question": "How often are backups tested?", "method": "bm25"})
    told = events_of(response)
    assert [name for name, _ in told][-1] == "error" and told[-1][1]["code"] == "llm_unavailable"
    assert counts(corpus) == before


def counts(corpus) -> tuple[int, ...]:
    tables = ("conversations", "messages", "message_sources")
    found = tuple(corpus.connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables)
    corpus.connection.rollback()
    return found


def test_a_client_that_hangs_up_leaves_nothing_behind(client, corpus, llm):
    llm.say(Reply("word " * 300))
    before = counts(corpus)

    async def hang_up_at_the_first_token() -> bytes:
        body = json.dumps({"question": "How often are backups tested?", "method": "bm25"}).encode()
        token, received, given = anyio.Event(), b"", False

        async def receive() -> dict:
            nonlocal given
            if not given:
                given = True
                return {"type": "http.request", "body": body, "more_body": False}
            await token.wait()
            return {"type": "http.disconnect"}

        async def send(message) -> None:
            nonlocal received
            received += message.get("body", b"")
            if b"event: token" in received:
                token.set()

        headers = [(b"host", b"127.0.0.1:8765"), (b"content-type", b"application/json")]
        scope = {
            "type": "http", "asgi": {"version": "3.0", "spec_version": "2.3"}, "http_version": "1.1", "method": "POST", "path": "/api/chat",
            "raw_path": b"/api/chat", "root_path": "", "scheme": "http", "query_string": b"", "headers": headers,
            "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 8765),
        }  # fmt: skip
        with anyio.fail_after(60):
            await client.app(scope, receive, send)
        return received

    received = client.portal.call(hang_up_at_the_first_token)
    assert b"event: token" in received and b"event: done" not in received
    assert counts(corpus) == before


def test_evidence_and_quotes_outlive_a_reingest_and_a_deletion(client, corpus):
    old = corpus.publish("chat/old.md", "The kettle whistles at ninety degrees.")
    conversation_id = ask(client, "When does the kettle whistle?", source_scope={"documents": [old.doc_id]})["done"]["conversation_id"]
    asked, answered = messages(client, conversation_id)
    assert client.get(f"/api/conversations/{conversation_id}").json()["document_id"] == old.source_id
    new = corpus.publish("chat/old.md", "The kettle is gone.", source_id=old.source_id)
    _, reread = messages(client, conversation_id)
    assert (reread["citations"][0]["doc_id"], reread["citations"][0]["present_doc_id"]) == (old.doc_id, new.doc_id)
    assert [source["trace"] for source in reread["sources"]] == [source["trace"] for source in answered["sources"]]
    assert ask(client, "Where is the kettle?", conversation_id=conversation_id)["retrieval"]["sources"][0]["trace"]["doc_id"] == new.doc_id

    mark_deleting(corpus.connection, [UUID(old.source_id)], "keep_file", now=datetime.now(UTC))
    corpus.connection.execute("DELETE FROM documents WHERE source_id = %s", [old.source_id])
    corpus.connection.commit()
    _, kept, *_ = messages(client, conversation_id)
    assert kept["sources"][0]["source_deleted_at"] and kept["citations"][0]["source_deleted_at"]
    assert kept["citations"][0]["quote"] == answered["citations"][0]["quote"] == "The kettle whistles at ninety degrees."
    conversation = client.get(f"/api/conversations/{conversation_id}").json()
    assert conversation["document_ids"] == conversation["deleted_document_ids"] == [old.source_id] and conversation["document_id"] is None
    widened = ask(client, "How often are backups tested?", conversation_id=conversation_id)
    assert widened["retrieval"]["sources"] == [] and "was deleted" in widened["text"]
    assert asked["content"] == "When does the kettle whistle?"


def test_an_empty_scope_is_about_nothing_and_no_scope_about_everything(client):
    nothing = ask(client, "How often are backups tested?", source_scope={})
    assert nothing["retrieval"]["sources"] == [] and "nothing is selected" in nothing["text"]
    assert messages(client, nothing["done"]["conversation_id"])[0]["content_parts"]["source_scope"]["resolved"]["count"] == 0
    everything = ask(client, "How often are backups tested?", source_scope=None)
    assert everything["retrieval"]["sources"] and messages(client, everything["done"]["conversation_id"])[0]["content_parts"] == {}


def test_a_question_to_the_graph_is_recorded_and_answered_by_documents(client):
    turn = ask(client, "How often are backups tested?", corpus="graph")
    answer = messages(client, turn["done"]["conversation_id"])[1]
    assert (answer["target_corpus"], answer["graph_evidence"]) == ("graph", None)
    assert answer["degraded"] == ["There is no knowledge graph to ask: the documents answered."]
    assert client.get(f"/api/conversations/{turn['done']['conversation_id']}").json()["target_corpus"] == "graph"


@contextmanager
def agent_conversation(corpus, conversation_id):
    corpus.connection.execute("UPDATE conversations SET agent_session_id = 'a1' WHERE conversation_id = %s", [conversation_id])
    corpus.connection.commit()
    yield
    corpus.connection.execute("UPDATE conversations SET agent_session_id = NULL WHERE conversation_id = %s", [conversation_id])
    corpus.connection.commit()


def test_what_cannot_be_asked_is_refused_before_anything_is_told(client, corpus):
    for body, status, code in [
        ({"question": " \0 "}, 422, "empty_question"),
        ({"question": "x", "conversation_id": "none"}, 404, "unknown_conversation"),
        ({"question": "x", "group_id": "none"}, 404, "unknown_group"),
        ({"question": "x", "workspace": "none"}, 404, "unknown_workspace"),
        ({"question": "x", "source_scope": {"documents": ["none"]}}, 404, "unknown_document"),
        ({"question": "x", "method": "guess"}, 422, "unknown_method"),
        ({"question": "x", "k": 0}, 422, "invalid_request"),
        ({"question": "x", "surprise": 1}, 422, "invalid_request"),
    ]:
        response = client.post("/api/chat", json=body)
        assert (response.status_code, response.json()["code"]) == (status, code), body
    made = client.post("/api/conversations", json={}).json()
    with agent_conversation(corpus, made["conversation_id"]):
        response = client.post("/api/chat", json={"question": "x", "conversation_id": made["conversation_id"]})
        assert (response.status_code, response.json()["code"]) == (409, "agent_conversation")
