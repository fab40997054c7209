"""Where the query service is reached, and its page for a document."""

from urllib.parse import quote, urlencode

from stemma.settings import Settings


def service_address(settings: Settings) -> str:
    """The root of the query service as this machine reaches it."""
    host = "127.0.0.1" if settings.service_host in ("0.0.0.0", "::", "") else settings.service_host
    return f"http://[{host}]:{settings.service_port}" if ":" in host else f"http://{host}:{settings.service_port}"


def document_page_url(settings: Settings, document: str, *, span: tuple[int, int] | None = None) -> str:
    """The page that shows a document (a source_id or a doc_id), with the code points from span[0] to span[1] marked."""
    marked = f"?{urlencode({'from': span[0], 'to': span[1]})}" if span else ""
    return f"{service_address(settings)}/#/document/{quote(document, safe='')}{marked}"
