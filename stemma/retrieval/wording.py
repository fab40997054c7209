"""What is searched for one query: the query itself, a passage that a language model imagines (HyDE), or other wordings of it."""

import re
from dataclasses import dataclass, field

from stemma.errors import StemmaError
from stemma.llm import LanguageModelRefused, LanguageModelUnavailable, Message, open_language_model
from stemma.retrieval.scope import without_unstorable
from stemma.settings import RetrievalMethod, Settings

PASSAGE_MAX_TOKENS = 300
WORDINGS_MAX_TOKENS = 400
WORDING_MAX_CHARS = 500
SHARE_OF_TIME = 0.5  # of QUERY_TIMEOUT_S, for the language model; a model that is silent must not double a search's time

_IMAGINE = (
    "Write one passage of about 100 words, as it could stand in a document that answers the question. "
    "Write in the language of the question, as plain text, the passage alone."
)
_REWORD = (
    "Write {n} other wordings of the question for a search engine: synonyms, the technical term, the wording of a document that answers it. "
    "Keep its language. One per line, nothing else."
)
_BULLET = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s+")


@dataclass(frozen=True)
class Wording:
    """The texts that stand for a query in each arm, and why they are fewer than the method promises, if they are."""

    queries: tuple[str, ...]
    """Searched in the keyword arm and, without a passage, in the semantic arm; the first is the query itself."""
    passage: str | None = None
    """Embedded as a passage in place of the query."""
    degraded: list[str] = field(default_factory=list[str])


def wording_of(query: str, method: RetrievalMethod, settings: Settings) -> Wording:
    """What the method searches. Only `hyde` and `expanded` ask a language model; where it fails they search the query itself and say why."""
    if method not in ("hyde", "expanded"):
        return Wording((query,))
    if reason := _off(method, settings):
        return Wording((query,), degraded=[reason])
    try:
        return _imagined(query, settings) if method == "hyde" else _reworded(query, settings)
    except (LanguageModelUnavailable, LanguageModelRefused) as error:
        return Wording((query,), degraded=[_fallback(error)])


def _off(method: RetrievalMethod, settings: Settings) -> str | None:
    if method == "hyde" and not settings.hyde_enabled:
        return "HYDE_ENABLED is off; the query itself was searched."
    if method == "expanded" and settings.expanded_queries == 0:
        return "EXPANDED_QUERIES is 0; the query itself was searched."
    if settings.llm_url is None:
        return "No language model is configured (STEMMA_LLM_URL); the query itself was searched."
    return None


def _imagined(query: str, settings: Settings) -> Wording:
    passage = _asked(_IMAGINE, query, PASSAGE_MAX_TOKENS, settings)
    if not passage:
        return Wording((query,), degraded=["The language model wrote no passage; the query itself was searched."])
    return Wording((query,), passage=passage)


def _reworded(query: str, settings: Settings) -> Wording:
    """The query and at most EXPANDED_QUERIES other lines, each once whatever its case."""
    answer = _asked(_REWORD.format(n=settings.expanded_queries), query, WORDINGS_MAX_TOKENS, settings)
    wordings: dict[str, str] = {query.casefold(): query}
    for line in answer.splitlines():
        wording = _BULLET.sub("", line).strip()[:WORDING_MAX_CHARS]
        if wording:
            wordings.setdefault(wording.casefold(), wording)
    queries = tuple(wordings.values())[: settings.expanded_queries + 1]
    if len(queries) == 1:
        return Wording(queries, degraded=["The language model wrote no other wording; the query itself was searched."])
    return Wording(queries)


def _asked(instruction: str, query: str, max_tokens: int, settings: Settings) -> str:
    with open_language_model(settings) as model:
        assert model is not None  # `_off` looked
        asked = [Message("system", instruction), Message("user", query)]
        completion = model.complete(asked, max_tokens=max_tokens, timeout_s=settings.query_timeout_s * SHARE_OF_TIME)
    return without_unstorable(completion.text).strip()


def _fallback(error: StemmaError) -> str:
    return f"The language model gave nothing ({error.code}); the query itself was searched."
