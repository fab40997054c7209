"""The page as its user drives it, in headless Chromium."""

import re
import threading
import time

import pytest
import uvicorn
from playwright.sync_api import expect
from searchable_corpus import WordCounts, open_corpus

from stemma.service.app import create_app
from stemma.stages import models_at_hand

ASTRAL = "Clefs 𝄞𝄞𝄞 and faces 😀😀😀 come first, before anything that is looked for."
NEEDLE = "The hidden needle 😀 lies here, <b>not bold</b> & quite <script>plain</script>."


@pytest.fixture(scope="module")
def corpus(module_database_url, tmp_path_factory):
    """A corpus without a model: the page does not care what makes the vectors."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(models_at_hand, "open_embedder", lambda *_args, **_options: WordCounts())
        patch.setattr(models_at_hand, "location_of", lambda *_args: "word-counts")
        yield from open_corpus(module_database_url, tmp_path_factory.mktemp("home"))


@pytest.fixture(scope="module")
def address(corpus):
    """The running service: an astral document, a long one, and one that failed."""
    corpus.publish("odd/astral.md", ASTRAL, NEEDLE, "And 𝄞 the end.")
    corpus.publish("long/book.txt", *(f"Paragraph {n} of a long book about haystacks 😀." for n in range(12_000)))
    with corpus.connection.transaction():
        corpus.connection.execute(
            """
            INSERT INTO sources (workspace_id, source_path, partition_key, disk_path, file_type, status, stage, error_code, error_message)
            SELECT workspace_id, 'odd/broken.pdf', 'odd/broken.pdf', 'x', 'pdf', 'failed', 'parsing', 'corrupt', 'It is no sound PDF.'
              FROM workspaces WHERE key = 'odd'
            """
        )
    server = uvicorn.Server(uvicorn.Config(create_app(corpus.settings), host="127.0.0.1", port=0, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    deadline = time.monotonic() + 60
    while not server.started:
        assert thread.is_alive() and time.monotonic() < deadline
        time.sleep(0.05)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join(60)


@pytest.fixture
def page(browser, address):
    """A fresh page that fails the test when a script fails, the policy is broken, or another host is asked."""
    context = browser.new_context()
    opened = context.new_page()
    opened.set_default_timeout(30_000)
    troubles = []
    opened.on("pageerror", lambda error: troubles.append(str(error)))
    opened.on("console", lambda message: troubles.append(message.text) if "Content Security Policy" in message.text else None)
    opened.on("request", lambda request: None if request.url.startswith(address) else troubles.append(request.url))
    yield opened
    context.close()
    assert troubles == []


def test_a_search_by_keyboard_leads_to_the_exact_span(page, address):
    page.goto(address)
    page.locator("#query").evaluate("input => input.blur()")
    page.keyboard.press("/")
    page.keyboard.type("hidden needle")
    page.keyboard.press("Enter")
    page.wait_for_selector("#results a.result")
    first = page.locator("#results a.result").first
    assert first.locator("mark").all_inner_texts() == ["hidden", "needle"]
    assert first.locator(".passage").inner_text() == NEEDLE
    assert first.locator(".badges").inner_text().replace("\n", "") == "sem #1·bm25 #1·fused 1.00"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_selector("#span")
    assert page.locator("#span").text_content() == NEEDLE
    assert page.locator("pre.text").text_content() == f"{ASTRAL}\n\n{NEEDLE}\n\nAnd 𝄞 the end."
    assert page.locator("#span").evaluate(
        "span => { const box = span.getBoundingClientRect(); return box.top >= 0 && box.bottom <= innerHeight }"
    )
    page.keyboard.press("Escape")
    page.wait_for_selector("#results a.result")


def test_an_address_opens_what_it_names(page, address):
    page.goto(f"{address}/#/search?q=needle&method=bm25&workspace=odd")
    page.wait_for_selector("#results a.result")
    assert page.input_value("#query") == "needle"
    assert (page.input_value("#method"), page.input_value("#workspace")) == ("bm25", "odd")
    assert "sem" not in page.locator(".badges").first.inner_text()


def test_filters_are_part_of_the_address_and_narrow_the_answer_down(page, address):
    page.goto(f"{address}/#/search?q=needle&method=bm25&workspace=odd&type=exe")
    expect(page.locator("#search-state")).to_contain_text("Nothing found.")
    assert page.input_value("#type") == "exe"
    page.fill("#type", "md, txt")
    page.check("#whole")
    page.wait_for_selector("#results a.result")
    assert page.evaluate("new URLSearchParams(location.hash.split('?')[1]).get('type')") == "md, txt"
    assert page.evaluate("new URLSearchParams(location.hash.split('?')[1]).get('whole')") == "1"
    page.fill("#before", "1990-01-01")
    page.keyboard.press("Enter")
    expect(page.locator("#search-state")).to_contain_text("Nothing found.")


def test_a_span_deep_in_a_long_text_is_exact_and_the_rest_can_be_shown(page, address):
    hit = page.request.post(f"{address}/api/search", data={"query": "Paragraph 11000", "method": "bm25", "k": 1}).json()["hits"][0]
    page.goto(f"{address}/#/document/{hit['doc_id']}?from={hit['char_start']}&to={hit['char_end']}")
    page.wait_for_selector("#span")
    assert page.locator("#span").text_content() == hit["content"]
    earlier = page.get_by_role("button", name="Show earlier text")
    while earlier.is_visible():
        earlier.click()
    whole = page.request.get(f"{address}/api/documents/{hit['doc_id']}/text").text()
    assert page.locator("pre.text").text_content() == whole


def test_a_span_of_a_version_that_was_replaced_leads_to_the_present_one(page, address, corpus):
    old = corpus.publish("odd/edited.md", "the old words")
    corpus.publish("odd/edited.md", "the new words", source_id=old.source_id)
    page.goto(f"{address}/#/document/{old.doc_id}?from=4&to=7")
    page.wait_for_selector("pre.text")
    assert page.locator("pre.text").text_content() == "the new words"
    assert "has changed" in page.locator("#view-document .notice").inner_text()
    assert page.locator("#span").count() == 0


def test_the_lineage_opens_from_a_hit_and_from_the_reader(page, address):
    page.goto(f"{address}/#/search?q=needle&method=bm25&workspace=odd")
    page.get_by_role("button", name="Why this result").first.click()
    panel = page.get_by_role("dialog", name="Lineage")
    expect(panel).to_contain_text("Search by meaning did not find it")
    expect(panel).to_contain_text("Search by keywords found it at rank 1")
    expect(panel).to_contain_text("odd/astral.md")
    expect(panel).to_contain_text("The text between these offsets is the passage.")
    expect(panel).to_contain_text("The file is no longer there.")
    assert panel.get_by_role("link", name="The run in Dagster").get_attribute("href").endswith("/runs/test")
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    page.locator("#results a.result").first.click()
    page.locator("#view-document").get_by_role("button", name="Lineage").click()
    expect(panel).to_contain_text("The text between these offsets is the passage.")
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    expect(page.locator("pre.text")).to_be_visible()


def test_failures_are_shown_with_code_and_message(page, address):
    page.goto(f"{address}/#/documents")
    page.locator("#status-filter a", has_text="failed").click()
    expect(page.locator("#document-rows tr")).to_have_count(1)
    row = page.locator("#document-rows tr").inner_text()
    assert "odd/broken.pdf" in row and "corrupt" in row and "It is no sound PDF." in row
    assert page.locator("#failed-count").inner_text() == "1 failed"


def test_a_refusal_is_shown_in_words(page, address):
    page.goto(f"{address}/#/document/{'0' * 16}")
    assert "No document has the id" in page.get_by_role("alert").inner_text()


def test_the_description_of_the_api_can_be_tried(page, address):
    page.goto(f"{address}/docs")
    page.wait_for_selector(".operation")
    operation = page.locator(".operation", has_text="Search the corpus")
    operation.locator("textarea").fill('{"query": "needle", "k": 1}')
    operation.get_by_role("button", name="Send").click()
    operation.locator(".answer").wait_for(state="visible")
    assert operation.locator(".answer").inner_text().startswith("200 in ")


def test_every_control_has_a_name(page, address):
    page.goto(f"{address}/#/search?q=needle")
    page.wait_for_selector("#results a.result")
    nameless = page.evaluate(
        """() => [...document.querySelectorAll("input, select, button, a, textarea")].filter((control) => control.checkVisibility()
             && !(control.labels?.length || control.getAttribute("aria-label") || control.textContent.trim())).map((control) => control.outerHTML)"""
    )
    assert nameless == []


def test_what_is_out_of_date_is_shown_with_its_reason_and_asked_for(page, address, corpus):
    page.goto(f"{address}/#/documents")
    expect(page.locator("#stale-count")).to_contain_text(re.compile(r"^\d+ documents out of date: \d+ new file"))
    page.get_by_role("button", name="Re-ingest to apply").click()
    expect(page.locator("#documents-state")).to_contain_text(re.compile(r"^\d+ documents asked for"))
    expect(page.locator("#stale")).to_be_hidden()
    with corpus.connection.transaction():
        assert corpus.connection.execute("SELECT count(*) > 0 FROM sources WHERE wished_version IS NOT NULL").fetchone() == (True,)


def test_ticked_documents_are_deleted_once_the_question_is_answered(page, address, corpus):
    for name in ("one", "two", "three"):
        corpus.publish(f"bin/{name}.md", f"{name} for the bin")
    page.goto(f"{address}/#/documents")
    page.get_by_label("Select bin/one.md").check()
    page.get_by_label("Select bin/two.md").check()
    expect(page.locator("#selection-count")).to_have_text("2 documents selected")
    page.locator("#delete-selected").click()
    expect(page.locator("#delete-names")).to_have_text("bin/one.mdbin/two.md")
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("#selection-count")).to_have_text("2 documents selected")
    page.locator("#delete-selected").click()
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.locator("#documents-state")).to_have_text("2 documents deleted; their files stay.")
    expect(page.locator("#document-rows tr", has_text="bin/one.md")).to_contain_text("deleted, file kept")
    expect(page.get_by_label("Select bin/one.md")).to_be_disabled()
    expect(page.locator("#document-rows tr", has_text="bin/three.md")).to_contain_text("1")
    expect(page.locator("#selection")).to_be_hidden()


def test_what_the_last_look_found_is_shown(page, address, corpus):
    note = '{"at": "2025-01-01T00:00:00+00:00", "notices": ["The library /x holds no file."]}'
    with corpus.connection.transaction():
        corpus.connection.execute("INSERT INTO app_settings (key, value) VALUES ('_reconcile_looked', %s)", [note])
    page.goto(address)
    expect(page.locator("#notice")).to_have_text("The library /x holds no file.")


def test_a_bundle_is_made_and_judged(page, address):
    page.goto(f"{address}/#/backups")
    page.get_by_role("button", name="Export now").click()
    expect(page.locator("#backups-state")).to_contain_text("was exported", timeout=60_000)
    expect(page.locator("#bundle-rows tr")).to_have_count(1)
    # Its vectors are of a model that counts words, and the settings name another.
    expect(page.locator("#bundle-rows .status")).to_have_text("bundle_incompatible")
    expect(page.get_by_role("button", name="Restore …")).to_be_disabled()


def test_results_come_while_typing_and_are_narrowed_by_folder_and_type(page, address):
    page.goto(address)
    page.locator("#query").press_sequentially("needle haystacks")
    expect(page.locator("#results .path", has_text="long/book.txt").first).to_be_visible()
    page.get_by_text("Filters", exact=True).click()
    page.locator("#type").fill(".MD")
    expect(page.locator("#results .path", has_text="long/book.txt")).to_have_count(0)
    expect(page.locator("#results .path", has_text="odd/astral.md").first).to_be_visible()
    page.locator("#type").fill("")
    page.locator("#folder option[value=long]").wait_for(state="attached")
    page.locator("#folder").select_option("long")
    expect(page.locator("#results .path").first).to_have_text("long/book.txt")
    assert "folder=long" in page.url


def test_a_chat_is_streamed_kept_renamed_and_deleted_and_its_quotes_open_the_reader(page, address):
    page.goto(f"{address}/#/chat")
    page.locator("#question").fill("hidden needle")
    page.keyboard.press("Enter")
    quote = page.locator(".message.assistant a.citation").first
    expect(quote).to_have_attribute("title", re.compile("hidden needle"))
    expect(page.locator(".message.assistant")).not_to_contain_text("[citation:")
    expect(page.locator("#conversations a")).to_have_text("hidden needle")
    quoted = quote.get_attribute("title")
    quote.click()
    expect(page.locator("#span")).to_have_text(quoted)
    page.keyboard.press("Escape")
    expect(page.locator(".message.assistant a.citation").first).to_be_visible()
    page.get_by_role("button", name="Rename hidden needle").click()
    page.get_by_role("textbox", name="Name of the conversation").fill("Needles")
    page.get_by_role("button", name="Rename", exact=True).click()
    expect(page.locator("#conversations a")).to_have_text("Needles")
    page.get_by_role("button", name="Delete Needles").click()
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.locator("#conversations a")).to_have_count(0)
    expect(page.locator("#messages li")).to_have_count(0)


def test_files_are_uploaded_into_the_folder_shown_and_failures_are_tried_again(page, address):
    page.goto(f"{address}/#/documents?folder=odd")
    expect(page.locator("#document-rows tr", has_text="odd/astral.md")).to_be_visible()
    expect(page.locator("#document-rows tr", has_text="long/book.txt")).to_have_count(0)
    page.locator("#upload-files").set_input_files([{"name": "new.md", "mimeType": "text/markdown", "buffer": b"# New"}])
    expect(page.locator("#upload-state")).to_have_text("1 file stored.")
    expect(page.locator("#document-rows tr", has_text="odd/new.md")).to_contain_text("pending")
    page.get_by_role("button", name="Retry odd/broken.pdf").click()
    expect(page.locator("#documents-state")).to_have_text("odd/broken.pdf is tried again.")
    expect(page.get_by_role("button", name="Retry odd/broken.pdf")).to_have_count(0)


def test_a_setting_says_what_its_change_costs_before_it_is_made(page, address):
    page.goto(f"{address}/#/settings")
    page.get_by_label("CHUNK_SIZE", exact=True).fill("700")
    page.get_by_role("button", name="What would it cost?").click()
    expect(page.locator("#settings-state")).to_contain_text(re.compile(r"^With this, \d+ documents? would be out of date: \d+ runs?"))
    page.get_by_label("CHUNK_SIZE", exact=True).fill("none")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#settings-state")).to_have_class("error")
    expect(page.get_by_role("button", name="Take CHUNK_SIZE back")).to_have_count(0)
