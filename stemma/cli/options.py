"""Options that several commands take, with one meaning."""

from typing import Annotated, Literal

import typer

StageOption = Annotated[
    Literal["documents", "chunks", "contextualized_chunks", "embeddings", "bm25_index", "corpus"] | None,
    typer.Option("--stage", help="A stage of the corpus, by the name of its asset in Dagster."),
]
WorkspaceOption = Annotated[str | None, typer.Option("--workspace", help="Only documents of this workspace.", show_default=False)]
