"""`stemma.client` and the MCP server against the running service, and both against its description."""

import json
import threading
import time
from typing import get_type_hints

import anyio
import httpx
import pytest
import uvicorn
from loop_of_its_own import run_in_own_loop
from mcp import Client

from stemma.client import ServiceAway, ServiceRefused, StemmaClient, shapes
from stemma.mcp.server import mcp_server

SHAPES = {
    shapes.Trace: "RetrievalTrace", shapes.Hit: "Hit", shapes.Place: "Place", shapes.SearchAnswer: "SearchAnswer", shapes.Source: "SourceBody",
    shapes.Document: "DocumentBody", shapes.DocumentList: "SourceList", shapes.Chunk: "ChunkBody", shapes.ChunkList: "ChunkList",
    shapes.Problem: "Problem",
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def published(corpus):
    corpus.publish("clients/other.md", "Nothing of note.")
    return corpus.publish("clients/boats.md", "Boats need water to float. " * 3, "They are painted every spring.")


@pytest.fixture(scope="module")
def url(client):
    """The address of the started app on a real port."""
    server = uvicorn.Server(uvicorn.Config(client.app, host="127.0.0.1", port=0, lifespan="off", log_config=None))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + 20
    while not server.started:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join(20)


@pytest.fixture
def stemma(url):
    with StemmaClient(url) as opened:
        yield opened


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_the_client_knows_exactly_the_fields_of_the_description(client, shape):
    described = client.get("/openapi.json").json()["components"]["schemas"][SHAPES[shape]]["properties"]
    assert set(get_type_hints(shape)) == set(described)


def test_every_path_of_the_client_is_one_of_the_description(client, stemma, published, tmp_path):
    """Each method is called once, and what it asked for is looked up."""
    asked: list[tuple[str, str]] = []

    def noted(request: httpx.Request) -> None:
        asked.append((request.method.lower(), request.url.path))

    stemma._http.event_hooks["request"].append(noted)
    (tmp_path / "sent.md").write_text("sent by the client")
    assert stemma.search("boats", method="bm25", scope={"workspaces": ["clients"]})["hits"][0]["chunk_id"] in published.chunk_ids
    assert [one["source_path"] for one in stemma.documents(workspace="clients")] == ["clients/boats.md", "clients/other.md"]
    found = stemma.document(published.source_id)
    chunk = stemma.chunks(found["doc_id"])["chunks"][0]
    assert stemma.text(found["source_id"])[chunk["char_start"] : chunk["char_end"]] == chunk["content"]
    assert stemma.titles("baots.md")[0]["source_id"] == published.source_id
    assert stemma.status()["documents"]["total"] >= 2
    assert stemma.upload(tmp_path / "sent.md", folder="sent")["source_path"] == "sent/sent.md"
    events = list(stemma.chat("When are boats painted?", method="bm25"))
    assert [event["name"] for event in events] == ["retrieval", "token", "citations", "done"]
    for refused in (lambda: stemma.lineage("0" * 16), lambda: stemma.document("none/../x"), lambda: list(stemma.chat(" "))):
        with pytest.raises(ServiceRefused):
            refused()
    described = client.get("/openapi.json").json()["paths"]
    patterns = {(method, path.count("/")) for path, operations in described.items() for method in operations}
    assert {(method, path.count("/")) for method, path in asked if ".." not in path} <= patterns


def test_a_refusal_says_what_the_service_says_and_nobody_there_is_another_thing(stemma):
    with pytest.raises(ServiceRefused) as refusal:
        stemma.search("x", method="guess")
    assert refusal.value.code == "unknown_method" and "guess" in str(refusal.value)
    with StemmaClient("http://127.0.0.1:9") as nobody, pytest.raises(ServiceAway):
        nobody.status()


def test_an_assistant_searches_reads_lists_and_traces(stemma, published):
    async def converse() -> None:
        async with Client(mcp_server(stemma)) as assistant:
            tools = {tool.name: tool for tool in (await assistant.list_tools()).tools}
            assert tools.keys() == {"search", "read_document", "list_documents", "trace"}
            assert all(tool.description and tool.annotations.read_only_hint for tool in tools.values())

            async def call(name, **arguments):
                result = await assistant.call_tool(name, arguments)
                return result.is_error, result.content[0].text

            failed, text = await call("search", query="when are boats painted", method="bm25", folders=["clients"])
            hit = json.loads(text)["hits"][0]
            assert not failed and hit["source_id"] == published.source_id
            _, text = await call("read_document", document=hit["doc_id"], char_start=hit["char_start"], n_chars=5)
            read = json.loads(text)
            assert (read["text"], read["next_char_start"]) == (hit["content"][:5], hit["char_start"] + 5)
            _, text = await call("list_documents", workspace="clients", limit=1)
            assert [one["source_path"] for one in json.loads(text)["documents"]] == ["clients/boats.md"]
            _, text = await call("list_documents", title="boasts.md")
            assert json.loads(text)["documents"][0]["source_path"] == "clients/boats.md"
            for name, arguments, code in [
                ("trace", {"identifier": "0" * 16}, "unknown_document"),
                ("read_document", {"document": "none"}, "unknown_document"),
                ("search", {"query": " "}, "empty_query"),
            ]:
                failed, text = await call(name, **arguments)
                assert failed and code in text

    run_in_own_loop(converse)


def test_an_assistant_reaches_it_over_http_on_this_machine_only(stemma, published):
    app = mcp_server(stemma).streamable_http_app(host="127.0.0.1")
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_config=None))

    async def converse() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(server.serve)
            with anyio.fail_after(30):
                while not server.started:
                    await anyio.sleep(0.02)
            port = server.servers[0].sockets[0].getsockname()[1]
            async with Client(f"http://127.0.0.1:{port}/mcp") as assistant:
                result = await assistant.call_tool("search", {"query": "boats", "method": "bm25"})
                assert json.loads(result.content[0].text)["hits"][0]["source_id"] == published.source_id
            async with httpx.AsyncClient(trust_env=False) as elsewhere:
                refused = await elsewhere.post(f"http://127.0.0.1:{port}/mcp", headers={"Host": "evil.example"}, json={})
                assert refused.status_code in (403, 421)
            server.should_exit = True

    run_in_own_loop(converse)
