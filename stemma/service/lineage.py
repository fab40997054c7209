"""A lineage with the addresses at which a person goes on: the run and the partition in Dagster, the document on the page."""

from pydantic import BaseModel, Field

from stemma.addresses import document_page_url
from stemma.library.lineage import Lineage
from stemma.orchestrator import partition_url, run_url
from stemma.settings import Settings


class LineageLinks(BaseModel):
    """Addresses."""

    run: str = Field(description="The run in the Dagster UI.")
    partition: str = Field(description="The document's own history in the Dagster UI.")
    page: str = Field(description="The document on the page of the query service, with the chunk marked.")


class LinkedLineage(Lineage):
    """Every step between a passage and the bytes it came from, with addresses."""

    links: LineageLinks


def with_links(lineage: Lineage, settings: Settings) -> LinkedLineage:
    """The lineage with the addresses that this installation's parts have."""
    document, chunk = lineage.document, lineage.chunk
    links = LineageLinks(
        run=run_url(settings, document.run_id),
        partition=partition_url(settings, document.partition_key, asset="corpus"),
        page=document_page_url(settings, document.doc_id, span=(chunk.char_start, chunk.char_end) if chunk else None),
    )
    return LinkedLineage(**lineage.model_dump(), links=links)
