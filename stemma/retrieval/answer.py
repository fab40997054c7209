"""What a search returns, in the one shape that HTTP, Python and the command line share."""

from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from stemma.retrieval.trace import RetrievalTrace

RetrievalMethod = Literal["semantic", "bm25", "hybrid"]
METHODS: tuple[RetrievalMethod, ...] = get_args(RetrievalMethod)


class Hit(BaseModel):
    """A passage with all that is needed to cite it. Offsets count code points of the document's text; ends are exclusive."""

    model_config = ConfigDict(frozen=True)

    chunk_id: str = Field(description="`doc_id::chunk_index`: changes with the document's bytes.")
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
    extraction: str = Field(description="text, ocr or ocr_fallback.")
    score: float = Field(description="What the hits are ordered by; comparable within one answer.")
    trace: RetrievalTrace | None = None


class SearchAnswer(BaseModel):
    """Hits, best first: all from one snapshot of the corpus."""

    model_config = ConfigDict(frozen=True)

    query: str = Field(description="The query as it was searched: without characters that no text can hold, without blanks around it.")
    method: RetrievalMethod
    hits: list[Hit]
    degraded: list[str] = Field(
        default_factory=list[str], description="Why this answer is less than the method promises, a sentence each; empty: nothing is."
    )
