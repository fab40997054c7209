"""What a search returns, in the one shape that HTTP, Python and the command line share."""

from typing import get_args

from pydantic import BaseModel, ConfigDict, Field

from stemma.retrieval.trace import RetrievalTrace
from stemma.settings import RetrievalMethod

METHODS: tuple[RetrievalMethod, ...] = get_args(RetrievalMethod)


class Place(BaseModel):
    """Another place at which a passage stands, letter by letter."""

    model_config = ConfigDict(frozen=True)

    chunk_id: str
    doc_id: str
    source_id: str
    source_path: str
    char_start: int
    char_end: int
    page_start: int | None
    page_end: int | None


class Hit(BaseModel):
    """A passage with all that is needed to cite it. Offsets count code points of the document's text; ends are exclusive."""

    model_config = ConfigDict(frozen=True)

    chunk_id: str = Field(description="`doc_id::chunk_index`: changes with the document's bytes. Of merged chunks the best one's.")
    chunk_ids: list[str] = Field(
        description="The chunks that the passage is made of, in the order of the text; one, unless neighbours were merged."
    )
    doc_id: str = Field(description="Version of the document: changes with its path or bytes.")
    source_id: str = Field(description="The document across edits and renames.")
    publication_id: int = Field(description="The publication that this answer read.")
    source_path: str = Field(description="Path relative to the library.")
    workspace: str = Field(description="Key of the workspace: the first folder, or `default`.")
    title: str
    file_type: str = Field(description="Extension without the dot.")
    content: str = Field(description="Exactly the text between char_start and char_end.")
    context: str | None = Field(description="What was put before the content for search, or null.")
    char_start: int
    char_end: int
    start_line: int = Field(description="From 1.")
    end_line: int = Field(description="Line of the last character.")
    page_start: int | None = Field(description="Page, slide or sheet from 1; null for formats without pages.")
    page_end: int | None
    section_path: list[str] = Field(description="Trail of headings, outermost first.")
    chunk_type: str = Field(description="prose, table, code or formula.")
    n_tokens: int = Field(description="Tokens by CHUNK_TOKENIZER; of merged chunks their sum, so what they share counts twice.")
    extraction: str = Field(description="text, ocr or ocr_fallback.")
    also_at: list[Place] = Field(
        default_factory=list[Place], description="Where else in scope the same text stands, when duplicates are folded; at most 100."
    )
    score: float = Field(
        description="What the hits are ordered by; comparable within one answer: the reranker's where it read the hit, else the fused score."
    )
    trace: RetrievalTrace | None = None


class SearchAnswer(BaseModel):
    """Hits, best first: all from one snapshot of the corpus."""

    model_config = ConfigDict(frozen=True)

    query: str = Field(description="The query as it was searched: without characters that no text can hold, without blanks around it.")
    method: RetrievalMethod
    searched: list[str] = Field(
        default_factory=list[str], description="Wordings that `expanded` searched beside the query; empty for other methods."
    )
    hits: list[Hit]
    degraded: list[str] = Field(
        default_factory=list[str], description="Why this answer is less than the method promises, a sentence each; empty: nothing is."
    )
