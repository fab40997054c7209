"""A language model behind a server that speaks the OpenAI protocol: chat completions, whole or as they are written.

StemmaError
 ├─ Unavailable          LanguageModelUnavailable   away, overloaded, too slow, or ended in the middle
 └─ ConfigurationError   LanguageModelRefused       the server rejects the key, the model or the request
"""

import json
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from time import monotonic, sleep
from typing import Any, Literal, cast

import httpx
import structlog

from stemma.errors import ConfigurationError, Unavailable
from stemma.settings import Settings

ANSWER_MAX_BYTES = 20_000_000  # of one response: a server that never ends must not fill the memory
RETRIED_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})
DETAIL_CHARS = 200  # of a server's own words in a message

_log = structlog.get_logger(__name__)


class LanguageModelUnavailable(Unavailable):
    """The language model did not answer, or not to the end."""

    code, remedy = "llm_unavailable", "Check the server at STEMMA_LLM_URL; LLM_TIMEOUT_S bounds the wait. The request may be repeated."


class LanguageModelRefused(ConfigurationError):
    """The language model's server rejects the key, the model's name or the request."""

    code, remedy = "llm_refused", "Check STEMMA_LLM_URL, STEMMA_LLM_API_KEY and LLM_MODEL."


@dataclass(frozen=True)
class Message:
    """One turn of a conversation."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True)
class Completion:
    """A whole answer."""

    text: str
    reasoning: str
    """What the model thought beforehand, where the server tells it apart; else empty."""
    finish_reason: str | None
    """`stop`, or `length` when the limit of tokens cut the text; None: the server does not say."""


@dataclass(frozen=True)
class Delta:
    """A piece of an answer while it is written."""

    kind: Literal["text", "reasoning"]
    text: str


class LanguageModel:
    """A model of a server. Connects to the host of its URL and no other: no proxy, no redirect. Safe from any thread.

    What is asked, answered and sent as a key is never logged, nor part of an error.
    """

    def __init__(
        self, url: str, *, model: str, api_key: str | None = None, timeout_s: float = 60.0, attempts: int = 3, retry_s: float = 0.5
    ) -> None:
        """
        Args:
            url: the server's root with its version, as in `http://127.0.0.1:8080/v1`.
            timeout_s: longest time a whole answer may take; of one that is streamed, longest silence.
            attempts: how often a request is made at most while the server is away or overloaded.
            retry_s: wait before the second attempt, doubled for each further one; a server's Retry-After is kept where longer.
        """
        self.model = model
        self._timeout_s, self._attempts, self._retry_s = timeout_s, attempts, retry_s
        self._key = api_key
        self._url = f"{url.rstrip('/')}/chat/completions"
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._client = httpx.Client(headers=headers, timeout=timeout_s, trust_env=False, follow_redirects=False)

    def complete(
        self, messages: Sequence[Message], *, max_tokens: int, temperature: float = 0.0, timeout_s: float | None = None
    ) -> Completion:
        """The whole answer.

        Args:
            timeout_s: less time than the model's own limit, where the asker has less.
        Raises:
            LanguageModelUnavailable: no whole answer came within the time and the attempts.
            LanguageModelRefused: the server will not answer this at all.
        """
        deadline = monotonic() + min(self._timeout_s, timeout_s or self._timeout_s)
        with self._response(self._body(messages, max_tokens, temperature, stream=False), deadline) as response:
            answer = _decoded(b"".join(_bounded(response, deadline)))
        choice = _first_choice(answer)
        message = _part(choice, "message")
        return Completion(_text(message, "content"), _reasoning(message), choice.get("finish_reason"))

    def stream(self, messages: Sequence[Message], *, max_tokens: int, temperature: float = 0.0) -> Generator[Delta]:
        """The answer, piece by piece as it is written; closing the generator ends the request.

        Nothing is tried again once a piece was given. Raises what `complete` does, also in the middle.
        """
        finished = False
        with self._response(self._body(messages, max_tokens, temperature, stream=True), monotonic() + self._timeout_s) as response:
            for data in _events(_bounded(response, deadline=None)):
                if data == b"[DONE]":
                    finished = True
                    break
                event = _decoded(data)
                if not event.get("choices") and "error" not in event:
                    continue  # the count of tokens comes without a choice
                choice = _first_choice(event)
                delta = _part(choice, "delta")
                if reasoning := _reasoning(delta):
                    yield Delta("reasoning", reasoning)
                if text := _text(delta, "content"):
                    yield Delta("text", text)
                finished = finished or choice.get("finish_reason") is not None
        if not finished:
            raise LanguageModelUnavailable("the language model's answer ended in the middle")

    def close(self) -> None:
        """Close the connections; a call made later fails."""
        self._client.close()

    def _body(self, messages: Sequence[Message], max_tokens: int, temperature: float, *, stream: bool) -> dict[str, Any]:
        said = [{"role": message.role, "content": message.content} for message in messages]
        return {"model": self.model, "messages": said, "max_tokens": max_tokens, "temperature": temperature, "stream": stream}

    @contextmanager
    def _response(self, body: dict[str, Any], deadline: float) -> Generator[httpx.Response]:
        """A response of status 200 whose body is still to be read, after as many attempts as it takes."""
        wait = self._retry_s
        for attempt in range(1, self._attempts + 1):
            left = deadline - monotonic()
            try:
                request = self._client.build_request("POST", self._url, json=body, timeout=max(left, 0.001))
                response = self._client.send(request, stream=True)
            except httpx.HTTPError as error:
                problem, asked_wait = f"the language model does not answer ({type(error).__name__})", 0.0
            else:
                with closing(response), _explained():
                    if response.is_success:
                        yield response
                        return
                    problem = self._refusal(response, deadline)
                    asked_wait = _retry_after(response)
            pause = max(wait, asked_wait)
            if attempt == self._attempts or monotonic() + pause >= deadline:
                raise LanguageModelUnavailable(problem)
            _log.warning("language model tried again", attempt=attempt, wait_s=pause, reason=problem)
            sleep(pause)
            wait *= 2
        raise AssertionError("the last attempt returns or raises")

    def _refusal(self, response: httpx.Response, deadline: float) -> str:
        """What an answer that is no answer says. Raises LanguageModelRefused where trying again cannot help."""
        status = response.status_code
        try:
            detail = _text(_part(_decoded(b"".join(_bounded(response, deadline))), "error"), "message")
        except LanguageModelUnavailable:
            detail = ""
        if self._key:  # a server may repeat what it was sent
            detail = detail.replace(self._key, "***")
        quoted = f": {detail[:DETAIL_CHARS]!r}" if detail and status not in (401, 403) else ""  # these quote a part of the key
        problem = f"the language model's server answered {status}{quoted}"
        if status in RETRIED_STATUS:
            return problem
        raise LanguageModelRefused(problem)


@contextmanager
def open_language_model(settings: Settings) -> Generator[LanguageModel | None]:
    """The model that the settings name, closed with the block; None while STEMMA_LLM_URL is unset."""
    if settings.llm_url is None:
        yield None
        return
    key = settings.llm_api_key.get_secret_value() if settings.llm_api_key else None
    model = LanguageModel(
        settings.llm_url, model=settings.llm_model, api_key=key, timeout_s=settings.llm_timeout_s, attempts=settings.llm_attempts
    )
    with closing(model):
        yield model


@contextmanager
def _explained() -> Generator[None]:
    try:
        yield
    except httpx.TimeoutException as error:
        raise LanguageModelUnavailable("the language model fell silent") from error
    except httpx.HTTPError as error:
        raise LanguageModelUnavailable(f"the language model's answer ended in the middle ({type(error).__name__})") from error


def _bounded(response: httpx.Response, deadline: float | None) -> Iterator[bytes]:
    """The bytes of a response, while there is time left and they are not too many."""
    n_bytes = 0
    for piece in response.iter_bytes():
        n_bytes += len(piece)
        if n_bytes > ANSWER_MAX_BYTES:
            raise LanguageModelUnavailable(f"the language model's answer has more than {ANSWER_MAX_BYTES:,} bytes")
        if deadline is not None and monotonic() > deadline:
            raise LanguageModelUnavailable("the language model took too long")
        yield piece


def _events(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The data of server-sent events. Lines end at line feeds alone: U+2028, which JSON may hold, ends none."""
    rest = b""
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                yield line.removeprefix(b"data:").strip()
    if rest.startswith(b"data:"):
        yield rest.removeprefix(b"data:").strip()


def _decoded(data: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(data)
    except ValueError as error:
        raise LanguageModelUnavailable("the language model's server answered with something else than JSON") from error
    if not isinstance(answer, dict):
        raise LanguageModelUnavailable("the language model's server answered with something else than an object")
    return cast(dict[str, Any], answer)


def _first_choice(answer: dict[str, Any]) -> dict[str, Any]:
    choices = cast(object, answer.get("choices"))
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        return cast(dict[str, Any], choices[0])
    raise LanguageModelUnavailable("the language model's server answered without a choice")


def _part(answer: dict[str, Any], name: str) -> dict[str, Any]:
    part = cast(object, answer.get(name))
    if not isinstance(part, dict):
        raise LanguageModelUnavailable(f"the language model's server answered without a {name}")
    return cast(dict[str, Any], part)


def _text(part: dict[str, Any], name: str) -> str:
    """The text of this name; an absent or null one is empty."""
    text = cast(object, part.get(name))
    if text is not None and not isinstance(text, str):
        raise LanguageModelUnavailable(f"the language model's server answered with a {name} that is no text")
    return text or ""


def _reasoning(message: dict[str, Any]) -> str:
    """What servers call `reasoning_content` (DeepSeek, llama.cpp, vLLM) or `reasoning` (OpenRouter, Ollama)."""
    return _text(message, "reasoning_content") or _text(message, "reasoning")


def _retry_after(response: httpx.Response) -> float:
    given = response.headers.get("Retry-After", "")
    return float(given) if given.isdecimal() else 0.0
