"""What a server may answer besides the right thing: a scripted one stands in for versions, proxies and gatekeepers."""

import base64
import json
import shutil
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import polars as pl
import pytest

from stemma.lexical.elasticsearch_index import ElasticsearchIndex
from stemma.lexical.elasticsearch_server import connect, report
from stemma.lexical.elasticsearch_terms import FORMAT, mapping
from stemma.lexical.errors import (
    ElasticsearchNotConfigured,
    ElasticsearchRefused,
    EntriesRefused,
    LexicalIndexDamaged,
    LexicalIndexUnavailable,
)
from stemma.lexical.index import ENTRY_SCHEMA, Scope
from stemma.settings import InvalidEnvironment, Settings, load_settings

Answer = tuple[int, dict]
EVERYWHERE = Scope()


class ScriptedServer:
    """Gives each request the answer that `answer` makes of (method, path, body, headers), and remembers the headers."""

    def __init__(self) -> None:
        self.answer: Callable[[str, str, bytes, dict[str, str]], Answer] = lambda *_: (200, {})
        self.headers: list[dict[str, str]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                headers = {name.lower(): value for name, value in self.headers.items()}
                outer.headers.append(headers)
                status, answer = outer.answer(self.command, self.path, body, headers)
                content = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("X-Elastic-Product", "Elasticsearch")
                self.send_header("Content-Type", "application/vnd.elasticsearch+json;compatible-with=8")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_POST = do_PUT = do_DELETE = do_HEAD = do_GET

            def log_message(self, *_: object) -> None:
                """Nothing on standard error."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def speak_tls(self, certificate: Path, key: Path) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._server.handle_error = lambda *_: None  # a client that refuses the certificate hangs up

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    running = ScriptedServer()
    yield running
    running.close()


def index_on(server: ScriptedServer, **options: object) -> ElasticsearchIndex:
    return ElasticsearchIndex(connect(Settings(elasticsearch_url=server.url, **options)), "i", address="the server")


def one_entry() -> pl.DataFrame:
    now = datetime.now(UTC)
    row = ("d::0", 7, "s", "d", 0, "default", [], "txt", "FILE", "", now, now, None, None, [], "harbour", "harbour")
    return pl.DataFrame([row], schema=ENTRY_SCHEMA, orient="row")


def test_a_server_of_version_8_that_refuses_a_client_of_version_9_is_spoken_to(server: ScriptedServer):
    def version_8(method: str, path: str, body: bytes, headers: dict[str, str]) -> Answer:
        if "compatible-with=9" in headers["accept"] + headers.get("content-type", ""):
            return 400, {
                "error": {"type": "media_type_header_exception", "reason": "Accept version must be either version 8 or 7, but found 9"}
            }
        return 200, {"version": {"number": "8.0.1"}, "status": "yellow"}

    server.answer = version_8
    assert report(connect(Settings(elasticsearch_url=server.url)), "x").version == "8.0.1"


@pytest.mark.parametrize(
    ("options", "sent"),
    [
        ({"elasticsearch_api_key": "a2V5"}, "ApiKey a2V5"),
        (
            {"elasticsearch_username": "reader", "elasticsearch_password": "pä:ss"},
            "Basic " + base64.b64encode("reader:pä:ss".encode()).decode(),
        ),
        ({"elasticsearch_api_key": "a2V5", "elasticsearch_username": "reader"}, "ApiKey a2V5"),
        ({}, None),
    ],
)
def test_key_or_user_are_sent_with_every_request(server: ScriptedServer, options: dict[str, str], sent: str | None):
    index_on(server, **options).drop()
    assert [headers.get("authorization") for headers in server.headers] == [sent]


def test_secrets_are_shown_by_neither_settings_nor_messages(server: ScriptedServer):
    server.answer = lambda *_: (401, {"error": {"type": "security_exception", "reason": "unable to authenticate"}})
    settings = Settings(
        elasticsearch_url=server.url, elasticsearch_username="reader", elasticsearch_password="geheim", elasticsearch_api_key="key1"
    )
    assert "geheim" not in repr(settings) + settings.model_dump_json() and "key1" not in repr(settings) + settings.model_dump_json()
    with pytest.raises(ElasticsearchRefused) as refused:
        report(connect(settings), "the server")
    assert "geheim" not in str(refused.value) and "the server knows no such user or key" in str(refused.value)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_an_overloaded_server_is_asked_a_few_times_and_then_counts_as_away(server: ScriptedServer, status: int):
    server.answer = lambda *_: (status, {"error": {"type": "es_rejected_execution_exception", "reason": "queue full"}})
    with pytest.raises(LexicalIndexUnavailable, match="queue full"):
        index_on(server).search("harbour", k=1, scope=EVERYWHERE)
    assert len(server.headers) <= 3


def test_a_server_that_does_not_answer_in_time_counts_as_away(server: ScriptedServer):
    answered = threading.Event()

    def slow(*_: object) -> Answer:
        answered.wait(10)
        return 200, {}

    server.answer = slow
    began = time.monotonic()
    with pytest.raises(LexicalIndexUnavailable, match="did not answer in time"):
        index_on(server, elasticsearch_timeout_s=0.2).search("harbour", k=1, scope=EVERYWHERE)
    answered.set()
    assert time.monotonic() - began < 10


@pytest.fixture
def certified(server: ScriptedServer, tmp_path: Path) -> tuple[str, Path]:
    """URL of a server that speaks TLS, and the certificate that it has signed itself."""
    if shutil.which("openssl") is None:
        pytest.skip("needs the program openssl to make a certificate")
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-keyout", key,
         "-out", certificate, "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"],
        check=True, capture_output=True,
    )  # fmt: skip
    server.answer = lambda *_: (200, {"version": {"number": "9.1.0"}, "status": "green"})
    server.speak_tls(certificate, key)
    return server.url.replace("http:", "https:"), certificate


def test_a_certificate_is_believed_that_is_named_or_has_the_fingerprint(certified: tuple[str, Path]):
    url, certificate = certified
    fingerprint = sha256(ssl.PEM_cert_to_DER_cert(certificate.read_text("ascii"))).hexdigest()
    for options in ({"ca_certs": certificate}, {"fingerprint": fingerprint}, {"ca_certs": certificate, "fingerprint": fingerprint}):
        settings = Settings(elasticsearch_url=url, **{f"elasticsearch_{name}": value for name, value in options.items()})
        assert report(connect(settings), "the server").version == "9.1.0"


def test_any_other_certificate_is_refused(certified: tuple[str, Path]):
    url, certificate = certified
    for options in ({}, {"elasticsearch_fingerprint": "0" * 64}, {"elasticsearch_ca_certs": certificate.with_name("absent.pem")}):
        with pytest.raises(ElasticsearchRefused, match="no secure connection"):
            report(connect(Settings(elasticsearch_url=url, **options)), "the server")


def test_a_right_that_the_user_lacks_is_named(server: ScriptedServer):
    server.answer = lambda *_: (403, {"error": {"type": "security_exception", "reason": "action [indices:data/read] is unauthorized"}})
    with pytest.raises(ElasticsearchRefused, match="unauthorized"):
        index_on(server).search("harbour", k=1, scope=EVERYWHERE)


def test_an_answer_that_lacks_a_part_of_the_index_is_never_asked_for(server: ScriptedServer):
    paths: list[str] = []

    def search(method: str, path: str, body: bytes, headers: dict[str, str]) -> Answer:
        paths.append(path)
        return 200, {"hits": {"hits": []}}

    server.answer = search
    index_on(server).search("harbour", k=1, scope=EVERYWHERE)
    assert "allow_partial_search_results=false" in paths[0]


def test_an_entry_that_the_server_refuses_is_reported_by_its_publication(server: ScriptedServer):
    def refusing(method: str, path: str, body: bytes, headers: dict[str, str]) -> Answer:
        if "/_bulk" in path:
            return 200, {
                "errors": True,
                "items": [{"index": {"_id": "d::0@7", "status": 400, "error": {"type": "document_parsing_exception", "reason": "no"}}}],
            }
        return 200, {"i": {"mappings": mapping("english")}}

    server.answer = refusing
    with pytest.raises(EntriesRefused) as refused:
        index_on(server).add(one_entry())
    assert refused.value.reasons == {7: "document_parsing_exception: no"}


def test_an_index_of_another_mapping_is_neither_written_nor_counted(server: ScriptedServer):
    server.answer = lambda *_: (200, {"i": {"mappings": {"properties": {"content": {"type": "text"}}}}})
    for call in (lambda index: index.add(one_entry()), lambda index: index.publications()):
        with pytest.raises(LexicalIndexDamaged):
            call(index_on(server))


def test_a_server_that_is_too_old_is_refused(server: ScriptedServer):
    server.answer = lambda *_: (200, {"version": {"number": "7.17.29"}, "status": "green"})
    with pytest.raises(ElasticsearchRefused, match=r"7\.17\.29"):
        report(connect(Settings(elasticsearch_url=server.url)), "the server")


def test_without_an_address_there_is_no_server(tmp_path):
    with pytest.raises(ElasticsearchNotConfigured):
        connect(Settings(home=tmp_path))
    with pytest.raises(InvalidEnvironment, match="STEMMA_ELASTICSEARCH_URL"):
        load_settings(home=tmp_path, bm25_backend="elasticsearch")
    with pytest.raises(InvalidEnvironment, match="ELASTICSEARCH_URL is not a URL"):
        load_settings(home=tmp_path, elasticsearch_url="localhost:9200")


def test_the_address_of_a_server_makes_it_the_engine(tmp_path):
    assert Settings(home=tmp_path).bm25_backend == "tantivy"
    assert Settings(home=tmp_path, elasticsearch_url="http://127.0.0.1:9200").bm25_backend == "elasticsearch"
    assert Settings(home=tmp_path, elasticsearch_url="http://127.0.0.1:9200", bm25_backend="tantivy").bm25_backend == "tantivy"


def test_the_mapping_is_varagitys_with_fields_beside_it():
    fields = mapping("english")["properties"]
    assert {name: fields[name] for name in ("content", "contextualized_content", "doc_id", "chunk_id", "original_index")} == {
        "content": {"type": "text", "analyzer": "english"},
        "contextualized_content": {"type": "text", "analyzer": "english"},
        "doc_id": {"type": "keyword", "index": False},
        "chunk_id": {"type": "keyword", "index": False},
        "original_index": {"type": "integer", "index": False},
    }
    assert mapping("english")["_meta"]["format"] == FORMAT and set(ENTRY_SCHEMA) <= set(fields)
