"""What is asked of a search, and the same once it was found to be answerable."""

from dataclasses import dataclass, field
from time import monotonic
from typing import Literal

from stemma.embedding.embedder import Vectors
from stemma.lexical.index import Scope
from stemma.retrieval.answer import METHODS, RetrievalMethod
from stemma.retrieval.errors import EmptyQuery, InvalidK, InvalidShape, QueryTimeout, QueryTooLong, UnknownMethod
from stemma.retrieval.passages import Shape
from stemma.retrieval.scope import EVERYWHERE, without_unstorable
from stemma.retrieval.wording import Wording
from stemma.settings import Settings

K_MAX = 1_000
QUERY_MAX_CHARS = 10_000
MIN_DEPTH = 50  # candidates an arm fetches for fusion at least: below, the order of the first hits would depend on k


@dataclass(frozen=True)
class SearchRequest:
    """What is asked."""

    query: str
    method: str | None = None
    """A name of METHODS; None: the setting RETRIEVAL_METHOD."""
    k: int = 10
    """Passages wanted, 1 to 1000, counted after neighbours were merged and duplicates folded."""
    scope: Scope = EVERYWHERE
    shape: Shape = field(default_factory=Shape)
    operators: bool = False
    """Whether the keyword arm reads the query as `stemma.lexical.query_language` says; else no character of it is an operator."""


@dataclass(frozen=True)
class Question:
    """A request that can be answered, with what its method searches."""

    query: str
    method: RetrievalMethod
    base: Literal["semantic", "bm25", "hybrid"]
    """The arms that are searched: of `reranked` its base, of `hyde` and `expanded` both."""
    k: int
    scope: Scope
    shape: Shape
    wording: Wording
    vectors: tuple[Vectors, ...]
    """One per text that the semantic arm searches; none without an embedder."""
    settings: Settings
    operators: bool = False
    started: float = field(default_factory=monotonic)

    @property
    def n_candidates(self) -> int:
        """Ranked chunks that the answer is chosen from, at first."""
        n_wanted = self.k if self.shape.is_plain else max(self.k * self.settings.over_fetch, MIN_DEPTH)
        return max(n_wanted, self.settings.rerank_candidates) if self.method == "reranked" else n_wanted

    def depth(self, n_candidates: int) -> int:
        """Chunks that each arm fetches for so many candidates."""
        is_single = self.base != "hybrid" and len(self.wording.queries) == 1
        return n_candidates if is_single else max(n_candidates, self.k * self.settings.over_fetch, MIN_DEPTH)

    def check(self) -> None:
        """Raises QueryTimeout once the time is over."""
        if monotonic() - self.started > self.settings.query_timeout_s:
            raise QueryTimeout(f"the search took longer than {self.settings.query_timeout_s:g} s")


def cleaned_query(query: str) -> str:
    """The query without NUL, lone surrogates and surrounding blanks. Raises EmptyQuery or QueryTooLong."""
    cleaned = without_unstorable(query).strip()
    if not cleaned:
        raise EmptyQuery("the query is empty")
    if len(cleaned) > QUERY_MAX_CHARS:
        raise QueryTooLong(f"the query has {len(cleaned):,} characters")
    return cleaned


def method_named(name: str) -> RetrievalMethod:
    """The method of that name. Raises UnknownMethod."""
    for method in METHODS:
        if method == name:
            return method
    raise UnknownMethod(name, known=METHODS)


def base_of(method: RetrievalMethod, settings: Settings) -> Literal["semantic", "bm25", "hybrid"]:
    """The method by which the arms are searched."""
    if method == "reranked":
        return settings.rerank_base
    return "hybrid" if method in ("hyde", "expanded") else method


def check_bounds(request: SearchRequest) -> None:
    """Raises InvalidK or InvalidShape."""
    if not 1 <= request.k <= K_MAX:
        raise InvalidK(f"k is {request.k}")
    if not 0 <= request.shape.diversity <= 1:
        raise InvalidShape(f"diversity is {request.shape.diversity:g}")
    if request.shape.max_tokens is not None and request.shape.max_tokens < 1:
        raise InvalidShape(f"max_tokens is {request.shape.max_tokens}")
