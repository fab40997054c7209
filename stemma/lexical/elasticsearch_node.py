"""The connection of the official client (version 9) to servers of version 8 and 9."""

from collections.abc import Mapping
from typing import Any, cast

from elastic_transport import HttpHeaders, Urllib3HttpNode
from elastic_transport.client_utils import DEFAULT


class CompatibleNode(Urllib3HttpNode):
    """Asks for the REST API of version 8, which both versions speak; of itself the client asks for 9, and a server of version 8 refuses."""

    def perform_request(
        self, method: str, target: str, body: bytes | None = None, headers: HttpHeaders | None = None, request_timeout: Any = DEFAULT
    ) -> Any:
        """The answer of the client's own method, whose parameters these are."""
        given = cast("Mapping[str, str]", headers or {})
        asked = HttpHeaders({name: value.replace("compatible-with=9", "compatible-with=8") for name, value in given.items()})
        return super().perform_request(method, target, body, headers=asked, request_timeout=request_timeout)
