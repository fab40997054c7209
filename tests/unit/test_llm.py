"""The client of a language model, against a server that misbehaves as real ones do."""

from threading import Event

import pytest
from scripted_llm import Reply, scripted_llm
from structlog.testing import capture_logs

from stemma.llm import Delta, LanguageModel, LanguageModelRefused, LanguageModelUnavailable, Message, open_language_model
from stemma.settings import InvalidEnvironment, Settings, load_settings

ASKED = [Message("system", "Be brief."), Message("user", "Why?")]
SECRET = "sk-very-secret"


@pytest.fixture
def llm():
    with scripted_llm() as server:
        yield server


@pytest.fixture
def model(llm):
    model = LanguageModel(llm.url, model="m", api_key=SECRET, timeout_s=5, retry_s=0.01)
    yield model
    model.close()


def ask(model):
    return model.complete(ASKED, max_tokens=10)


def test_an_answer_comes_whole_with_its_reasoning_apart(llm, model):
    llm.say(Reply("Because.", reasoning="Hm."))
    completion = ask(model)
    assert (completion.text, completion.reasoning, completion.finish_reason) == ("Because.", "Hm.", "stop")
    (request,) = llm.requests
    assert request["messages"] == [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why?"}]
    assert (request["model"], request["max_tokens"], request["stream"]) == ("m", 10, False)
    assert llm.headers[0]["Authorization"] == f"Bearer {SECRET}"


def test_an_answer_comes_in_pieces_and_line_separators_within_it_end_no_event(llm, model):
    llm.say(Reply(pieces=["Be\u2028cause ", "of\x85it\r\n"], reasoning="Hm."))
    assert list(model.stream(ASKED, max_tokens=10)) == [
        Delta("reasoning", "Hm."),
        Delta("text", "Be\u2028cause "),
        Delta("text", "of\x85it\r\n"),
    ]


@pytest.mark.parametrize("status", [429, 500, 503])
def test_an_overloaded_server_is_asked_again(llm, model, status):
    llm.say(Reply(status=status), Reply(status=status), "Because.")
    assert ask(model).text == "Because."
    assert len(llm.requests) == 3


def test_attempts_are_bounded(llm, model):
    llm.say(Reply("busy", status=503))
    with pytest.raises(LanguageModelUnavailable, match="503: 'busy'"):
        ask(model)
    assert len(llm.requests) == 3


def test_a_server_that_wants_a_longer_wait_than_there_is_time_is_not_waited_for(llm, model):
    llm.say(Reply(status=429, headers={"Retry-After": "3600"}))
    with pytest.raises(LanguageModelUnavailable, match="429"):
        ask(model)
    assert len(llm.requests) == 1


@pytest.mark.parametrize("status", [301, 400, 401, 404])
def test_a_refusal_is_not_tried_again(llm, model, status):
    llm.say(Reply("no such model", status=status, headers={"Location": "http://192.0.2.1/"}))
    with pytest.raises(LanguageModelRefused, match=str(status)):
        ask(model)
    assert len(llm.requests) == 1


@pytest.mark.parametrize("status", [400, 401, 500])
def test_neither_log_nor_error_holds_the_key_or_what_was_asked(llm, model, status):
    llm.say(Reply(f"Incorrect key {SECRET}", status=status))
    with capture_logs() as logs, pytest.raises((LanguageModelRefused, LanguageModelUnavailable)) as raised:
        ask(model)
    assert SECRET not in str(raised.value)
    assert SECRET not in str(logs) and "Why?" not in str(logs)


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b"[]", b"{}", b'{"choices": []}', b'{"choices": [null]}', b'{"choices": [{"message": {"content": 1}}]}', b"\xff"],
)
def test_an_answer_that_is_none_is_the_server_s_fault(llm, model, body):
    llm.say(Reply(body=body))
    with pytest.raises(LanguageModelUnavailable):
        ask(model)


@pytest.mark.parametrize(
    "reply", [Reply("one two three", cut_after=1), Reply(body=b"data: {}\n\n"), Reply(body=b'data: {"error": {}}\n\n')]
)
def test_a_stream_that_ends_in_the_middle_says_so(llm, model, reply):
    llm.say(reply)
    with pytest.raises(LanguageModelUnavailable):
        list(model.stream(ASKED, max_tokens=10))
    assert len(llm.requests) == 1


def test_silence_ends_at_the_timeout(llm):
    release = Event()
    llm.say(Reply("late", release=release))
    hasty = LanguageModel(llm.url, model="m", timeout_s=0.2)
    for answer in (ask, lambda model: list(model.stream(ASKED, max_tokens=10))):
        with pytest.raises(LanguageModelUnavailable, match="Timeout"):
            answer(hasty)
    release.set()
    hasty.close()


def test_a_server_that_is_not_there_is_unavailable():
    with scripted_llm() as gone:
        pass
    with pytest.raises(LanguageModelUnavailable, match="ConnectError"):
        ask(LanguageModel(gone.url, model="m", timeout_s=1, retry_s=0.01))


def test_no_proxy_of_the_environment_is_used(llm, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://192.0.2.1:1")
    llm.say("Because.")
    assert ask(LanguageModel(llm.url, model="m", timeout_s=5)).text == "Because."


def test_the_settings_name_the_model(llm, tmp_path, monkeypatch):
    monkeypatch.setenv("STEMMA_LLM_API_KEY", SECRET)
    settings = Settings(home=tmp_path, llm_url=llm.url, llm_model="named")
    assert SECRET not in repr(settings) and SECRET not in str(settings.model_dump(mode="json"))
    with open_language_model(settings) as model:
        ask(model)
    assert llm.requests[0]["model"] == "named"
    assert llm.headers[0]["Authorization"] == f"Bearer {SECRET}"


def test_without_an_url_there_is_no_model(tmp_path):
    with open_language_model(Settings(home=tmp_path)) as model:
        assert model is None


@pytest.mark.parametrize("url", ["ftp://host/v1", "http:///v1", "host:8080", "http://[::1/v1", "http://user:secret", "http://host:0/v1"])
def test_an_url_that_is_none_is_refused_without_being_repeated(url):
    with pytest.raises(InvalidEnvironment, match="LLM_URL is not a URL such as") as raised:
        load_settings(llm_url=url)
    assert url not in str(raised.value)
