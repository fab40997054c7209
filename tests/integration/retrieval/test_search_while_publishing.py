"""A document that is published again and again is always found whole: its old version or its new one."""

from threading import Event, Thread
from time import monotonic

import pytest

from stemma.store.postgres import connect


@pytest.mark.parametrize("method", ["semantic", "bm25", "hybrid"])
def test_every_answer_holds_exactly_one_whole_version(corpus, ask, database_url, method):
    source_id = corpus.publish("a.md", *(f"needle v0 part {part}" for part in range(4))).source_id
    stop, published = Event(), []

    def publish():
        with connect(database_url) as corpus.connection:
            version = 0
            while not stop.is_set():
                version += 1
                corpus.publish("a.md", *(f"needle v{version} part {part}" for part in range(3 + version % 3)), source_id=source_id)
                published.append(version)

    writer = Thread(target=publish)
    writer.start()
    try:
        seen, n_asked, deadline = set(), 0, monotonic() + 60
        while n_asked < 60 or (len(seen) < 3 and monotonic() < deadline):
            n_asked += 1
            hits = ask("needle", method=method, k=20).hits
            versions = {hit.content.split()[1] for hit in hits}
            assert len(versions) == 1, "an answer mixes versions, or lost the document"
            number = int(versions.pop()[1:])
            assert len(hits) == (4 if number == 0 else 3 + number % 3)
            seen.add(number)
    finally:
        stop.set()
        writer.join()
    assert len(published) > 1 and len(seen) >= 3
