"""`stemma mcp`: the library for assistants that speak the Model Context Protocol."""

from typing import Annotated, Literal

import typer

from stemma.cli.console import command, note


@command
def mcp(
    *,
    transport: Annotated[
        Literal["stdio", "http"], typer.Option(help="`stdio`, for a program that starts this command; `http`, on this machine only.")
    ] = "stdio",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Of `http`.")] = 8766,
) -> None:
    """Offer the library to assistants by the Model Context Protocol.

    Tools: search, read_document, list_documents, trace. They ask the running query service (`stemma up`), and change nothing.

    \b
    Examples:
      stemma mcp
      stemma mcp --transport http --port 8766

    \b
    An assistant's configuration:
      {"mcpServers": {"stemma": {"command": "stemma", "args": ["mcp"]}}}
    """
    from stemma.addresses import service_address
    from stemma.cli.home import served_settings
    from stemma.client import StemmaClient
    from stemma.mcp.server import mcp_server

    with StemmaClient(service_address(served_settings())) as client:
        server = mcp_server(client)
        if transport == "stdio":
            server.run("stdio")
        else:
            note(f"http://127.0.0.1:{port}/mcp")
            server.run("streamable-http", host="127.0.0.1", port=port)
