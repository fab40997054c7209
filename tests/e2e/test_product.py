"""One walk through the started product as its user takes it: the page, the Dagster UI, an edit, a deletion."""

import json
import re
import sys
from pathlib import Path
from urllib.parse import quote

import httpx
from loop_of_its_own import run_in_own_loop
from mcp import Client, StdioServerParameters
from playwright.sync_api import expect

from stemma.client import StemmaClient

SCREENSHOTS = Path(__file__).resolve().parents[2] / "screenshots"
QUESTION = "Which temperature is the camera cooled to before dark frames are taken?"
BROKEN = "observatory/archive/logbook-1998-damaged.docx"


def partition_page(product, asset: str, source_path: str) -> str:
    """The page of one document among an asset's partitions."""
    return f"{product.dagster}/assets/{asset}?view=partitions&partition={quote(source_path, safe='')}"


def test_every_file_is_published_or_failed_with_a_code(product):
    listed = json.loads(product.stemma("documents", "--json").stdout)
    files = {path.relative_to(product.library).as_posix() for path in product.library.rglob("*") if path.is_file()}
    assert {document["source_path"] for document in listed} == files
    assert {document["source_path"]: document["error_code"] for document in listed if document["status"] != "ready"} == {BROKEN: "corrupt"}


def test_the_page_finds_the_answer_and_opens_it_at_the_exact_span(product, page):
    page.goto(product.page)
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("/")
    page.keyboard.type(QUESTION)
    page.keyboard.press("Enter")
    first = page.locator("#results a.result").first
    expect(first).to_contain_text("-15 °C")
    expect(first).to_contain_text("page 2")
    expect(first.locator(".badges")).to_contain_text(re.compile(r"sem #\d+.*bm25 #\d+.*fused \d\.\d\d"))
    page.screenshot(path=SCREENSHOTS / "search.png")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    marked = page.locator("#span")
    expect(marked).to_be_in_viewport()
    hit = product.search(QUESTION)[0]
    assert marked.evaluate("element => element.textContent") == hit["content"]
    page.screenshot(path=SCREENSHOTS / "document.png")


def test_the_page_lists_failures_with_their_reason(product, page):
    page.goto(f"{product.page}/#/documents")
    page.locator("#status-filter").get_by_text("failed").click()
    row = page.locator("#document-rows tr", has_text="logbook-1998-damaged.docx")
    expect(row).to_contain_text("corrupt")
    page.screenshot(path=SCREENSHOTS / "documents.png")


def test_dagster_shows_the_graph_a_partition_per_document_and_the_failed_one_red(product, page):
    page.goto(f"{product.dagster}/asset-groups")
    for asset in ("source_files", "documents", "chunks", "contextualized_chunks", "embeddings", "bm25_index", "corpus"):
        expect(page.get_by_text(asset, exact=True).first).to_be_visible()
    page.screenshot(path=SCREENSHOTS / "asset-graph.png")
    page.goto(partition_page(product, "documents", BROKEN))
    expect(page.get_by_text("Failed (1)")).to_be_visible()
    expect(page.get_by_text("failed, and did not materialize this asset")).to_be_visible()
    page.screenshot(path=SCREENSHOTS / "partition-failed.png")
    page.goto(f"{product.dagster}/assets/documents?view=checks&checkDetail=parsed")
    page.get_by_text("Execution history").click()
    expect(page.get_by_text(BROKEN).first).to_be_visible()
    [failed] = [document for document in json.loads(product.stemma("documents", "--json").stdout) if document["source_path"] == BROKEN]
    expect(page.get_by_text(failed["error_message"]).first).to_be_visible()
    page.screenshot(path=SCREENSHOTS / "check-failed.png")


def test_dagster_counts_one_materialization_per_published_document(product):
    query = """{ assetNodes { assetKey { path } partitionStats { numPartitions numMaterialized numFailed } } }"""
    answer = httpx.post(f"{product.dagster}/graphql", json={"query": query}, timeout=60).json()["data"]["assetNodes"]
    counts = {node["assetKey"]["path"][0]: node["partitionStats"] for node in answer}
    n_files = sum(path.is_file() for path in product.library.rglob("*"))
    assert counts["corpus"] == {"numPartitions": n_files, "numMaterialized": n_files - 1, "numFailed": 1}


def test_a_second_pass_does_nothing(product):
    summary = product.ingest()
    assert (summary["runs"], summary["published"], summary["new"], summary["changed"]) == (0, 0, 0, 0)
    assert summary["model_calls"] == {"parse": 0, "context": 0, "embed": 0}
    assert summary["unchanged"] == summary["seen"] > 20


def test_an_edit_is_searchable_and_the_old_text_is_gone_then_a_deletion_is(product):
    product.write("kitchen/gazpacho.md", "# Gazpacho\n\nBlend tomatoes with a quince called Aldebaran.\n")
    assert product.ingest()["published"] == 1
    assert "Aldebaran" in product.search("quince called Aldebaran", method="bm25")[0]["content"]
    product.write("kitchen/gazpacho.md", "# Gazpacho\n\nBlend tomatoes with a melon called Betelgeuse.\n")
    summary = product.ingest()
    assert (summary["changed"], summary["published"]) == (1, 1)
    assert "Betelgeuse" in product.search("melon called Betelgeuse", method="bm25")[0]["content"]
    assert all(
        "Aldebaran" not in hit["content"]
        for method in ("bm25", "semantic", "hybrid")
        for hit in product.search("Aldebaran quince", method=method)
    )
    (product.library / "kitchen/gazpacho.md").unlink()
    product.ingest()
    product.ingest()
    assert all(
        "Betelgeuse" not in hit["content"]
        for method in ("bm25", "semantic", "hybrid")
        for hit in product.search("Betelgeuse melon", method=method)
    )
    assert "kitchen/gazpacho.md" not in product.stemma("documents", "--json").stdout


def test_a_rename_calls_no_model_and_keeps_the_source(product):
    before = {hit["source_path"]: hit["source_id"] for hit in product.search("sourdough starter")}
    old, new = "kitchen/bread/sourdough/starter.md", "kitchen/bread/sourdough/levain.md"
    (product.library / old).rename(product.library / new)
    summary = product.ingest()
    assert summary["model_calls"] == {"parse": 0, "context": 0, "embed": 0} and summary["published"] == 1
    after = {hit["source_path"]: hit["source_id"] for hit in product.search("sourdough starter")}
    assert after[new] == before[old] and old not in after


def test_an_upload_is_answered_from_and_an_assistant_finds_it_too(product, tmp_path):
    note = tmp_path / "kettle.md"
    note.write_text("# Kettle\n\nThe observatory's kettle whistles at ninety-one degrees.\n", "utf-8")
    with StemmaClient(product.page) as stemma:
        stored = stemma.upload(note, folder="observatory/kitchen")
        assert stored["source_path"] == "observatory/kitchen/kettle.md"
        product.ingest()
        told = {event["name"]: event["data"] for event in stemma.chat("When does the kettle whistle?")}
        cited = told["citations"]["citations"][0]
        assert stemma.text(cited["doc_id"])[cited["quote_char_start"] : cited["quote_char_end"]] == cited["quote"]
        assert "ninety-one" in cited["quote"] and cited["source_id"] == stored["source_id"]

    async def converse() -> None:
        command = StdioServerParameters(command=sys.executable, args=["-m", "stemma.cli.main", "mcp"], env=product.environment)
        async with Client(command) as assistant:
            found = await assistant.call_tool("search", {"query": "When does the kettle whistle?", "k": 1})
            assert json.loads(found.content[0].text)["hits"][0]["source_id"] == stored["source_id"]

    run_in_own_loop(converse)


def test_keywords_are_answered_by_the_command(product):
    hits = json.loads(product.stemma("search", "violet lamp laser", "--method", "bm25", "--json").stdout)["hits"]
    assert hits[0]["source_path"].endswith("laser-safety.docx")


def test_nothing_beyond_loopback_was_reached(product):
    assert not product.socket_log.exists() or product.socket_log.read_text() == ""


def test_a_second_start_on_the_same_home_is_refused(product):
    refused = product.stemma("up", check=False)
    assert refused.returncode != 0 and re.search(r"pid \d+", refused.stderr)
