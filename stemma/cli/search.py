"""`stemma search`: ranked passages at the terminal, by the running service or straight from the stores."""

import textwrap
from collections.abc import Generator
from contextlib import closing, contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from stemma.cli.console import Refused, command, note, print_json

if TYPE_CHECKING:
    from stemma.settings import Settings

EXCERPT_CHARS = 320
HTTP_TIMEOUT_S = 60.0
Body = dict[str, Any]
"""What `POST /api/search` takes, before it is encoded."""
Answer = dict[str, Any]
"""What `POST /api/search` returns, decoded."""


@command
def search(
    query: Annotated[str, typer.Argument(help="Plain words; no character of them is an operator.")],
    *,
    k: Annotated[int, typer.Option("-k", help="Passages wanted, 1 to 1000.")] = 10,
    method: Annotated[
        Literal["semantic", "bm25", "hybrid", "reranked", "hyde", "expanded"] | None,
        typer.Option(help="Default: the setting RETRIEVAL_METHOD."),
    ] = None,
    workspace: Annotated[list[str] | None, typer.Option(help="Only in this workspace; may be repeated.", show_default=False)] = None,
    folder: Annotated[list[str] | None, typer.Option(help="Only below this folder; may be repeated.", show_default=False)] = None,
    document: Annotated[
        list[str] | None, typer.Option(help="Only in this document, by source_id or doc_id; may be repeated.", show_default=False)
    ] = None,
    file_type: Annotated[
        list[str] | None, typer.Option("--type", help="Only in files of this extension; may be repeated.", show_default=False)
    ] = None,
    document_type: Annotated[
        list[str] | None, typer.Option(help="Only FILE, NOTE, ARTIFACT or THREAD_DAY; may be repeated.", show_default=False)
    ] = None,
    language: Annotated[
        list[str] | None, typer.Option(help="Only in this language (ISO 639-1); may be repeated.", show_default=False)
    ] = None,
    section: Annotated[list[str] | None, typer.Option(help="Only below this heading; may be repeated.", show_default=False)] = None,
    pages: Annotated[list[str] | None, typer.Option(help="Only on these pages, `3` or `3-5`; may be repeated.", show_default=False)] = None,
    modified_from: Annotated[datetime | None, typer.Option(help="Only documents of this time or later (UTC).", show_default=False)] = None,
    modified_before: Annotated[
        datetime | None, typer.Option(help="Only documents from before this time (UTC).", show_default=False)
    ] = None,
    ingested_from: Annotated[datetime | None, typer.Option(help="Only what was ingested then or later (UTC).", show_default=False)] = None,
    ingested_before: Annotated[datetime | None, typer.Option(help="Only what was ingested before (UTC).", show_default=False)] = None,
    merge: Annotated[bool, typer.Option("--merge", help="Show chunks that follow each other as one passage; -k counts passages.")] = False,
    fold: Annotated[bool, typer.Option("--fold", help="Show equal texts once, with all their places.")] = False,
    diversity: Annotated[float, typer.Option(help="0 to 1: how much likeness to better passages counts against relevance.")] = 0.0,
    max_tokens: Annotated[int | None, typer.Option(help="Tokens of all passages together.", show_default=False)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print exactly what POST /api/search returns.")] = False,
    verbose: Annotated[int, typer.Option("-v", count=True, help="Show where each arm ranked a passage; -vv: ids and offsets too.")] = 0,
) -> None:
    """Find the passages that answer QUERY.

    They come best first, each with its place in its document. The running query service answers, since its model is warm. Without one the stores are read directly: `--method bm25` then needs no
    model and answers within two seconds. Restrictions are joined by AND, the values of a repeated one by OR.

    \b
    Examples:
      stemma search "how often are backups tested"
      stemma search Urlaub --workspace handbook --method bm25 -k 3
      stemma search "notice period" --folder legal/2024 --type pdf --pages 1-3 --merge
      stemma search "leave carry-over" -v
      stemma search "leave carry-over" --json | jq -r '.hits[].source_path'

    \b
    -v shows, for instance: sem #1 · bm25 #3 · fused 0.94
    """
    from stemma.cli.home import served_settings

    scope = {
        "workspaces": workspace,
        "folders": folder,
        "documents": document,
        "file_types": file_type,
        "document_types": document_type,
        "languages": language,
        "sections": section,
        "pages": None if pages is None else [_page_range(written) for written in pages],
        "modified_from": modified_from and modified_from.isoformat(),
        "modified_before": modified_before and modified_before.isoformat(),
        "ingested_from": ingested_from and ingested_from.isoformat(),
        "ingested_before": ingested_before and ingested_before.isoformat(),
    }
    shape = {"merge": merge, "fold": fold, "diversity": diversity, "max_tokens": max_tokens}
    with answered(served_settings(), query, method=method, k=k, scope=scope, shape=shape) as answer:
        if as_json:
            print_json(answer)
        else:
            print_hits(answer, verbose=verbose)


def _page_range(written: str) -> dict[str, int]:
    first, _, last = written.partition("-")
    if not first.strip().isdecimal() or not (last or first).strip().isdecimal():
        raise typer.BadParameter(f"{written!r} is not a page such as 3, nor pages such as 3-5", param_hint="--pages")
    return {"first": int(first), "last": int(last or first)}


@contextmanager
def answered(
    settings: "Settings", query: str, *, method: str | None = None, k: int = 10, scope: Body | None = None, shape: Body | None = None
) -> Generator[Answer]:
    """The answer of the running service, or of the stores where none runs; what had to be started for it ends with the block.

    Raises:
        RequestError, Refused: the search cannot be answered as it is asked.
        Unavailable: a store is away, or there is none yet.
    """
    from stemma.cli.home import supervisor_of

    body: Body = {"query": query, "method": method, "k": k, "scope": scope, "shape": shape}
    if supervisor_of(settings.home) is not None:
        answer = _ask_service(settings, body)
        if answer is not None:
            yield answer
            return
    with _search_stores(settings, body) as answer:
        yield answer


def print_hits(answer: Answer, *, verbose: int = 0) -> None:
    """The hits for a person to read."""
    from rich.console import Console
    from rich.text import Text

    console = Console()
    for reason in answer["degraded"]:
        note(reason)
    if verbose and answer["searched"]:
        note(f"Also searched: {' · '.join(answer['searched'])}")
    if not answer["hits"]:
        note("Nothing was found.")
    for number, hit in enumerate(answer["hits"], start=1):
        section = [" › ".join(hit["section_path"])] if hit["section_path"] else []
        recognised = ["by OCR"] if hit["extraction"] != "text" else []
        place = " · ".join([hit["source_path"], *section, _lines(hit), *recognised])
        console.print(Text.assemble((f"{number:>3}  ", "bold"), (place, "bold")), soft_wrap=True)
        if verbose and hit["trace"]:
            console.print(Text(f"     {badges(hit['trace'])}", "cyan"), soft_wrap=True)
        if verbose > 1:
            console.print(
                Text(f"     {hit['chunk_id']} · chars {hit['char_start']}-{hit['char_end']} · {hit['source_id']}", "dim"), soft_wrap=True
            )
        for place in hit["also_at"]:
            console.print(Text(f"     also {place['source_path']}", "dim"), soft_wrap=True)
        excerpt = textwrap.shorten(hit["content"], EXCERPT_CHARS, placeholder=" …")
        console.print(Text(textwrap.indent(textwrap.fill(excerpt, max(40, min(console.width, 110) - 5)), "     ")))
        console.print()


def badges(trace: dict[str, Any]) -> str:
    """A hit's trace in one line, `sem #1 · bm25 #3 · fused 0.94 · rerank +2`; an arm that did not find it is left out."""
    parts = [f"{name} #{trace[field]}" for name, field in (("sem", "semantic_rank"), ("bm25", "bm25_rank")) if trace[field] is not None]
    parts.append(f"fused {trace['fused_score']:.2f}")
    if trace["rerank_delta"] is not None:
        parts.append(f"rerank {trace['rerank_delta']:+d}")
    return " · ".join(parts)


def _lines(hit: dict[str, Any]) -> str:
    if hit["page_start"] is not None:
        return f"page {hit['page_start']}" if hit["page_start"] == hit["page_end"] else f"pages {hit['page_start']}-{hit['page_end']}"
    return f"line {hit['start_line']}" if hit["start_line"] == hit["end_line"] else f"lines {hit['start_line']}-{hit['end_line']}"


def _ask_service(settings: "Settings", body: Body) -> Answer | None:
    """The service's answer; None when it does not answer at all. Raises Refused."""
    from stemma.addresses import service_address
    from stemma.client import ServiceAway, ServiceRefused, StemmaClient

    with StemmaClient(service_address(settings), timeout_s=HTTP_TIMEOUT_S) as client:
        try:
            return dict(client.search(**body))
        except ServiceAway:
            return None
        except ServiceRefused as refusal:
            raise Refused(dict(refusal.problem)) from None


@contextmanager
def _search_stores(settings: "Settings", body: Body) -> Generator[Answer]:
    from stemma.cli.postgres import corpus_database
    from stemma.retrieval.keyword_indexes import OpenKeywordIndexes
    from stemma.retrieval.search import search_by_active_model
    from stemma.service.bodies import SearchBody
    from stemma.stages.models_at_hand import ModelsAtHand
    from stemma.store.app_settings import current_settings
    from stemma.store.postgres import connect, open_pool

    request = SearchBody.model_validate(body).request()
    with corpus_database(settings) as url:
        with connect(url) as connection:
            current = current_settings(connection, settings)
        with closing(OpenKeywordIndexes(settings)) as keyword_indexes, open_pool(url, max_size=2) as pool:
            models = ModelsAtHand(lambda: pool, settings)
            answer = search_by_active_model(request, pool=pool, lexical=keyword_indexes, embedder_of=models, settings=current)
        yield answer.model_dump(mode="json")
