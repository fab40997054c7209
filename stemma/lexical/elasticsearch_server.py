"""The Elasticsearch server: how it is reached, and what its refusals mean to this part."""

import warnings
from base64 import b64encode
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from stemma.lexical.errors import ElasticsearchNotConfigured, ElasticsearchRefused, LexicalIndexUnavailable
from stemma.settings import Settings

if TYPE_CHECKING:
    from elasticsearch import Elasticsearch

MIN_VERSION = (8, 0)
RETRIES = 2
"""Further tries of a request that found no connection, or a server that is overloaded or starting; none of one that took too long."""
BACKOFF_S, MAX_BACKOFF_S = 0.2, 2.0

_AWAY = frozenset({408, 429, 500, 502, 503, 504})


@dataclass(frozen=True)
class ServerReport:
    """What a server says of itself."""

    version: str
    health: str
    """green, yellow (every entry is there, a replica is not) or red; "" where this user may not know."""


def connect(settings: Settings) -> "Elasticsearch":
    """A client for ELASTICSEARCH_URL; nothing is sent before it is used.

    It asks for the REST API of version 8, which servers of version 8 and 9 speak.

    Raises:
        ElasticsearchNotConfigured: the setting is unset.
    """
    from elasticsearch import Elasticsearch, ElasticsearchWarning

    from stemma.lexical.elasticsearch_node import CompatibleNode

    if settings.elasticsearch_url is None:
        raise ElasticsearchNotConfigured("the keyword index lies in Elasticsearch, and ELASTICSEARCH_URL is unset")

    # A server without security says so in every answer; that is its operator's choice, and he has been told.
    warnings.filterwarnings("ignore", category=ElasticsearchWarning)
    options: dict[str, Any] = {}
    if settings.elasticsearch_api_key is not None:
        options["api_key"] = settings.elasticsearch_api_key.get_secret_value()
    elif settings.elasticsearch_username is not None:
        password = settings.elasticsearch_password
        user = f"{settings.elasticsearch_username}:{password.get_secret_value() if password else ''}"
        # The client's own option takes ASCII alone.
        options["headers"] = {"authorization": f"Basic {b64encode(user.encode()).decode()}"}
    if settings.elasticsearch_ca_certs is not None:
        options["ca_certs"] = str(settings.elasticsearch_ca_certs.expanduser())
    if settings.elasticsearch_fingerprint is not None:
        options |= {
            "ssl_assert_fingerprint": settings.elasticsearch_fingerprint,
            "verify_certs": settings.elasticsearch_ca_certs is not None,
            "ssl_show_warn": False,
        }
    try:
        return Elasticsearch(
            settings.elasticsearch_url, node_class=CompatibleNode, request_timeout=settings.elasticsearch_timeout_s, max_retries=RETRIES,
            retry_on_status=(429, 502, 503, 504), retry_backoff_base=BACKOFF_S, retry_backoff_cap=MAX_BACKOFF_S, **options,
        )  # fmt: skip
    except (ValueError, OSError) as error:  # a file of certificates that is missing or none
        raise ElasticsearchRefused(f"the connection to Elasticsearch cannot be set up: {error}") from error


def report(client: "Elasticsearch", address: str) -> ServerReport:
    """What the server says of itself. Raises LexicalIndexUnavailable or ElasticsearchRefused."""
    from elasticsearch import AuthorizationException

    with explained(address):
        version = str(client.info()["version"]["number"])
        try:
            health = str(client.cluster.health()["status"])
        except AuthorizationException:
            health = ""
    if tuple(int(part) for part in version.split(".")[:2]) < MIN_VERSION:
        raise ElasticsearchRefused(f"{address} is Elasticsearch {version}; 8 or 9 is needed")
    return ServerReport(version, health)


def address_of(settings: Settings) -> str:
    """The server as messages name it: host and port, no secret."""
    parts = urlsplit(settings.elasticsearch_url or "")
    return f"Elasticsearch at {parts.hostname}:{parts.port}" if parts.port else f"Elasticsearch at {parts.hostname}"


@contextmanager
def explained(address: str) -> Generator[None]:
    """Turn what the client raises about the server into the errors of this part; what is left is about the request, and a bug."""
    from elastic_transport import ConnectionTimeout, TlsError, TransportError
    from elasticsearch import ApiError, AuthenticationException, UnsupportedProductError

    try:
        yield
    except ConnectionTimeout as error:
        raise LexicalIndexUnavailable(f"{address} did not answer in time") from error
    except TlsError as error:
        raise ElasticsearchRefused(f"{address}: no secure connection ({_cause(error)})") from error
    except UnsupportedProductError as error:
        raise ElasticsearchRefused(f"{address} is not Elasticsearch") from error
    except TransportError as error:
        raise LexicalIndexUnavailable(f"{address} cannot be reached ({_cause(error)})") from error
    except AuthenticationException as error:
        raise ElasticsearchRefused(f"{address} knows no such user or key") from error
    except ApiError as error:
        said = reason_of(error.body)
        if error.status_code in _AWAY or is_blocked(said):
            raise LexicalIndexUnavailable(f"{address} does not take requests now: {said}") from error
        if error.status_code == 403:
            raise ElasticsearchRefused(f"{address} does not allow it: {said}") from error
        raise


def is_blocked(reason: str) -> bool:
    """Whether an index is closed to writes, as it is when a disk of the server fills up: that passes, without a change here."""
    return "cluster_block_exception" in reason or "blocked by" in reason


def reason_of(body: Any) -> str:
    """What the server said was wrong, in at most 300 characters."""
    error: Any = cast(dict[str, Any], body).get("error", body) if isinstance(body, dict) else body
    if isinstance(error, dict):
        said = cast(dict[str, Any], error)
        error = f"{said.get('type')}: {said.get('reason')}"
    return str(error)[:300].rstrip(".; ")


def _cause(error: BaseException) -> str:
    """What the system said of a failed connection, which client and pool have wrapped."""
    inner: BaseException | None = error
    while inner is not None:
        if isinstance(inner, OSError) and inner.strerror:
            return inner.strerror
        inner = inner.__cause__ or inner.__context__
    return str(error)[:200]
