"""A small typed client of the query service: `with StemmaClient() as stemma: stemma.search("…")`."""

from stemma.client.client import ServiceAway, ServiceRefused, StemmaClient
from stemma.client.shapes import Chunk, ChunkList, Document, DocumentList, Event, Hit, Problem, Scope, SearchAnswer, Source, Trace

__all__ = [
    "Chunk",
    "ChunkList",
    "Document",
    "DocumentList",
    "Event",
    "Hit",
    "Problem",
    "Scope",
    "SearchAnswer",
    "ServiceAway",
    "ServiceRefused",
    "Source",
    "StemmaClient",
    "Trace",
]
