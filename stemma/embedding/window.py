"""Whether chunks of the size that is set fit what the embedding model reads at once."""

from stemma.embedding.models import embedding_spec
from stemma.settings import Settings

CHARS_PER_TOKEN = 4  # of English prose; other scripts have fewer, so a size in characters that passes here may still be over there
CONTEXT_TOKENS = 32  # a title and a trail of headings
_IN_TOKENS = frozenset({"token_based", "docling_hybrid", "semantic"})


def window_warning(settings: Settings) -> str | None:
    """What to tell who set these settings: None where the longest chunk, its context and the model's prefix fit the window.

    Nothing is cut when they do not: the chunk is embedded by windows, whose mean is one vector for more than one passage of it.
    Raises EmbeddingModelUnavailable.
    """
    spec = embedding_spec(settings.embedding_model)
    n_chunk = settings.chunk_size if settings.chunking_strategy in _IN_TOKENS else -(-settings.chunk_size // CHARS_PER_TOKEN)
    n_beside = (CONTEXT_TOKENS if settings.contextualizer == "structural" else 0) + len(spec.passage_prefix.split())
    if n_chunk + n_beside <= spec.max_tokens:
        return None
    about = "" if settings.chunking_strategy in _IN_TOKENS else "about "
    return (
        f"CHUNK_SIZE {settings.chunk_size} ({about}{n_chunk} tokens, {n_beside} of context) can exceed the {spec.max_tokens} tokens that "
        f"{spec.model} reads at once: such chunks are embedded in pieces and averaged, and are found less exactly"
    )
