"""The retrieval trace: why a hit stands where it stands."""

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field

Arm = Literal["semantic", "bm25"]


class RetrievalTrace(BaseModel):
    """Ranks count from 1. An arm that did not surface the chunk has neither rank nor score; `rerank_*` stay null without a reranker."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    semantic_rank: int | None = Field(None, ge=1, description="Rank in the semantic arm.")
    semantic_score: float | None = Field(None, description="Cosine similarity of query and chunk.")
    bm25_rank: int | None = Field(None, ge=1, description="Rank in the keyword arm.")
    bm25_score: float | None = Field(None, description="Relevance as the keyword engine computes it; comparable within one answer only.")
    fused_score: float = Field(description="Fused score from 0 to 1 in `hybrid`; else the score of the only arm.")
    fused_rank: int = Field(ge=1, description="Rank after fusion; else the rank in the only arm.")
    rerank_score: float | None = Field(None, description="Score of the reranker.")
    rerank_delta: int | None = Field(None, description="Places won by reranking; negative: lost.")
    final_rank: int = Field(ge=1, description="Rank in this answer.")

    @classmethod
    def of_one_arm(cls, arm: Arm, *, rank: int, score: float) -> Self:
        """The trace of a method with a single arm: its own rank and score stand for the fused ones."""
        return cls.model_validate(
            {f"{arm}_rank": rank, f"{arm}_score": score, "fused_score": score, "fused_rank": rank, "final_rank": rank}
        )
