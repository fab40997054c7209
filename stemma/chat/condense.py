"""Follow-up questions: what is searched for when a question leans on those before it."""

from collections.abc import Sequence
from dataclasses import dataclass

from stemma.chat.prompts import Said, condensing
from stemma.errors import StemmaError
from stemma.llm import LanguageModel
from stemma.retrieval.scope import without_unstorable

MAX_TOKENS = 200
MAX_CHARS = 1_000  # a longer one is no question but an answer


@dataclass(frozen=True)
class StandaloneQuery:
    """What drives retrieval."""

    query: str
    condensed: bool
    """Whether a model wrote it; else it is the question as it was asked."""
    fallback: str | None = None
    """Why no model wrote it although it should have, as a sentence."""


def standalone_query(question: str, history: Sequence[Said], *, model: LanguageModel | None, enabled: bool) -> StandaloneQuery:
    """The question as it can be searched for; a first question stands alone already."""
    if not history or not enabled:
        return StandaloneQuery(question, condensed=False)
    if model is None:
        return StandaloneQuery(
            question, condensed=False, fallback="No language model is configured: the follow-up was searched as it was asked."
        )
    try:
        written = without_unstorable(model.complete(condensing(history, question), max_tokens=MAX_TOKENS).text).strip().strip('"')
    except StemmaError as error:
        return StandaloneQuery(question, condensed=False, fallback=f"The follow-up was searched as it was asked ({error.code}).")
    if not written or len(written) > MAX_CHARS:
        return StandaloneQuery(
            question, condensed=False, fallback="The follow-up was searched as it was asked: the model wrote no question."
        )
    return StandaloneQuery(written, condensed=True)
