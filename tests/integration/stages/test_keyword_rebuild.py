"""The keyword index is a copy of rows: lost, damaged or of another recipe, it is made again without a file and without a model."""

import shutil
from datetime import UTC, datetime

import pytest

from stemma import settings as stemma_settings
from stemma.library.deletion import mark_deleting
from stemma.retrieval.keyword_indexes import OpenKeywordIndexes
from stemma.retrieval.question import SearchRequest
from stemma.retrieval.search import search_by_active_model
from stemma.stages import keyword_rebuild
from stemma.stages.corpus import publish_documents
from stemma.stages.keyword_rebuild import rebuild_keyword_index, tend_keyword_index
from stemma.store.index_lock import IndexesBusy, alone
from stemma.store.locks import SPARSE_INDEX_LOCK
from stemma.store.sparse_indexes import active_sparse_index

TEXTS = {
    f"{folder}/note{n}.md": f"# Note {n}\n\nThe harbour of town {n} has {n + 2} piers and a lighthouse."
    for n in range(5)
    for folder in ("a/b", "c")
}


@pytest.fixture
def library(corpus):
    """Ten documents, published; from here on the model refuses to be asked for a passage."""
    for path, text in TEXTS.items():
        corpus.write(path, text)
    corpus.ingest()
    return corpus


def ask(corpus, query: str):
    here = corpus.installation
    return search_by_active_model(
        SearchRequest(query, method="bm25", k=20), pool=here.pool, lexical=OpenKeywordIndexes(corpus.settings),
        embedder_of=here.embedder_of, settings=here.settings(),
    )  # fmt: skip


def active(corpus):
    with corpus.installation.pool.connection() as connection:
        return active_sparse_index(connection)


def refuse_the_model(corpus):
    def refused(spec):
        raise AssertionError("the model was asked")

    corpus.installation.embedder_of = refused


def lose_folder(folder):
    shutil.rmtree(folder)


def cut_files_short(folder):
    for file in folder.glob("*.store"):
        file.write_bytes(file.read_bytes()[:10])
    for file in folder.glob("*.idx"):
        file.write_bytes(b"")


def lose_meta(folder):
    (folder / "meta.json").unlink()


def answers(corpus, query: str) -> list[tuple[str, float]]:
    return [(hit.chunk_id, hit.score) for hit in ask(corpus, query).hits]


@pytest.mark.parametrize("lose", [lose_folder, cut_files_short, lose_meta])
def test_a_lost_index_is_found_and_made_again_while_full_text_search_answers(library, lose):
    before = answers(library, "lighthouse town 3")
    lose(active(library).folder(library.settings.home))
    refuse_the_model(library)
    assert ask(library, "lighthouse").degraded and len(ask(library, "lighthouse").hits) == 10
    said = tend_keyword_index(library.installation, budget_s=60)
    assert said[0].startswith("the keyword index was lost") and said[1].startswith("searches read")
    assert ask(library, "lighthouse").degraded == []
    assert answers(library, "lighthouse town 3") == before
    assert tend_keyword_index(library.installation, budget_s=60) == []


def test_it_is_made_again_in_portions_and_no_half_of_it_answers(library, monkeypatch):
    monkeypatch.setattr(keyword_rebuild, "CHUNKS_PER_COMMIT", 3)
    lose_folder(active(library).folder(library.settings.home))
    looks = 0
    while tend_keyword_index(library.installation, budget_s=0)[-1].endswith("documents"):
        looks += 1
        answer = ask(library, "lighthouse")
        assert answer.degraded and len(answer.hits) == 10
    assert looks == 3 and ask(library, "lighthouse").degraded == []


def test_documents_published_into_a_lost_index_do_not_make_it_pass_for_whole(library):
    lose_folder(active(library).folder(library.settings.home))
    library.write("new.md", "A lighthouse of glass.")
    library.ingest()
    answer = ask(library, "lighthouse")
    assert answer.degraded and len(answer.hits) == 11
    tend_keyword_index(library.installation, budget_s=60)
    answer = ask(library, "lighthouse")
    assert answer.degraded == [] and len(answer.hits) == 11


def test_a_deletion_that_has_taken_its_entries_first_leaves_the_index_for_whole(library):
    name = active(library).name
    [(source_id, publication_id)] = library.rows("SELECT source_id, publication_id FROM documents ORDER BY source_path LIMIT 1")
    with library.installation.pool.connection() as connection:
        mark_deleting(connection, [source_id], "keep_file", now=datetime.now(UTC))
    library.installation.remove_sparse([publication_id])
    assert tend_keyword_index(library.installation, budget_s=60) == []
    assert active(library).name == name


def test_a_damaged_index_stops_no_document(library):
    cut_files_short(active(library).folder(library.settings.home))
    library.write("new.md", "A lighthouse of glass.")
    [outcomes] = library.ingest()
    assert list(outcomes["corpus"].versions) == ["new.md"]


def test_a_run_whose_entries_went_into_the_lost_index_publishes_nothing_and_is_done_again(library):
    library.write("new.md", "A lighthouse of glass.")
    [batch] = library.look().batches
    run = library.open(batch.batch_id)
    library.work(run, publish=False)
    lose_folder(active(library).folder(library.settings.home))
    tend_keyword_index(library.installation, budget_s=60)
    outcome = publish_documents(run, run.sources())
    assert outcome.versions == {} and outcome.failures == {}
    library.runs.ended.add(run.run_id)
    library.ingest()
    assert len(ask(library, "lighthouse").hits) == 11


def test_a_rebuild_on_demand_gives_identical_answers_and_the_sound_index_answers_until_then(library):
    before, old = answers(library, "lighthouse town 3"), active(library)
    refuse_the_model(library)
    degraded = []
    done = rebuild_keyword_index(library.installation, progress=lambda *_: degraded.append(ask(library, "lighthouse").degraded))
    assert (done.reason, done.n_documents, done.n_entries) == (None, 10, 10)
    assert degraded == [[]]
    assert active(library).name != old.name and answers(library, "lighthouse town 3") == before
    assert library.look().batches == ()


def test_a_scope_finds_in_a_rebuilt_index_what_it_found_before(library):
    from stemma.lexical.index import Scope

    def found(scope):
        index = library.installation.index_of(active(library))
        return sorted(index.search("lighthouse", k=50, scope=scope)["chunk_id"])

    source_id = str(library.value("SELECT source_id FROM sources WHERE source_path = 'c/note1.md'"))
    scopes = [Scope(workspaces=("a",)), Scope(folders=("a/b",)), Scope(documents=(source_id,)), Scope(file_types=("md",))]
    before = [found(scope) for scope in scopes]
    rebuild_keyword_index(library.installation)
    assert [found(scope) for scope in scopes] == before and [len(hits) for hits in before] == [5, 5, 1, 10]


def test_killed_between_commits_a_rebuild_goes_on(library, monkeypatch):
    monkeypatch.setattr(keyword_rebuild, "CHUNKS_PER_COMMIT", 4)

    def killed(done, whole):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rebuild_keyword_index(library.installation, progress=killed)
    assert ask(library, "lighthouse").degraded == []
    done = rebuild_keyword_index(library.installation)
    assert done.n_documents == 6 and len(ask(library, "lighthouse").hits) == 10


def test_of_two_rebuilds_at_once_the_second_is_told_so(library, database_url):
    with alone(database_url, SPARSE_INDEX_LOCK):
        with pytest.raises(IndexesBusy):
            rebuild_keyword_index(library.installation)
        assert tend_keyword_index(library.installation, budget_s=1) == ["another process is at work on the keyword index"]


def test_before_the_first_ingest_there_is_nothing_to_make_again(corpus):
    assert rebuild_keyword_index(corpus.installation).sparse_index_id is None
    assert tend_keyword_index(corpus.installation, budget_s=1) == []


def another_recipe(monkeypatch):
    monkeypatch.setitem(stemma_settings.CODE_VERSIONS, "bm25", "another")


def test_another_recipe_is_built_beside_by_the_runs_that_it_makes_due_and_then_read(library, monkeypatch):
    old = active(library)
    another_recipe(monkeypatch)
    [batch] = library.look().batches
    run = library.open(batch.batch_id)
    library.work(run)
    library.runs.ended.add(run.run_id)
    assert active(library) == old
    assert tend_keyword_index(library.installation, budget_s=60)[0].startswith("searches read")
    assert active(library) != old and len(ask(library, "lighthouse").hits) == 10
    assert library.look().batches == ()


def test_a_recipe_that_is_wanted_no_more_is_not_built_on(library, monkeypatch):
    with monkeypatch.context() as patched:
        another_recipe(patched)
        library.write("new.md", "A lighthouse of glass.")
        library.work(library.open(library.look().batches[0].batch_id))
    tend_keyword_index(library.installation, budget_s=60)
    assert library.rows("SELECT state FROM sparse_indexes ORDER BY sparse_index_id") == [("active",), ("retired",)]


def test_a_rebuild_by_another_recipe_leaves_nothing_stale(library, monkeypatch):
    another_recipe(monkeypatch)
    rebuild_keyword_index(library.installation)
    assert library.look().batches == ()


def test_a_retired_index_goes_with_its_files_once_no_query_can_read_it(library):
    old = active(library)
    rebuild_keyword_index(library.installation)
    assert tend_keyword_index(library.installation, budget_s=1) == []
    library.rows("UPDATE sparse_indexes SET retired_at = retired_at - interval '61 seconds' WHERE state = 'retired' RETURNING 1")
    assert tend_keyword_index(library.installation, budget_s=1) == [f"the retired keyword index {old.name} was removed"]
    assert not old.folder(library.settings.home).exists()
    assert library.value("SELECT count(*) FROM sparse_indexes") == 1
