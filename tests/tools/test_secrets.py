"""Secrets in text: what is hidden, what is not, and how long it takes."""

from __future__ import annotations

import base64
import hashlib
import json
import logging
import random
import time
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_brain.common import secrets as module
from agent_brain.common.secrets import (
    HIDDEN,
    SecretFilter,
    configured_secrets,
    get_logger,
    model_secrets,
    register_secret,
    register_secrets,
    scrub,
)
from agent_brain.errors import ToolDefinitionError
from agent_brain.tools import Action, ToolError, ToolResult, call_tool, tool

VALUE = "kept-quiet-4711"


@pytest.fixture(autouse=True)
def own_registry(monkeypatch):
    monkeypatch.setattr(module, "_values", ())


SECRETS = {
    "OpenAI": ("key sk-proj-abcdefgh12345678 is wrong", "sk-proj-abcdefgh12345678"),
    "Anthropic": ("sk-ant-api03-abcdefgh-_12", "sk-ant-api03-abcdefgh-_12"),
    "GitHub": ("remote: ghp_abcdefghijklmnop1234 denied", "ghp_abcdefghijklmnop1234"),
    "GitHub fine-grained": ("github_pat_11ABCDEFG0abcdefghij", "github_pat_11ABCDEFG0abcdefghij"),
    "GitLab": ("glpat-abcdefghijklmnop1234", "glpat-abcdefghijklmnop1234"),
    "AWS": ("AKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLE"),
    "AWS secret": (
        "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    ),
    "Google": ("?key=AIzaSyA1234567890abcdefghijklmn", "AIzaSyA1234567890abcdefghijklmn"),
    "Google OAuth": ("ya29.a0AfH6SMBx-abc", "ya29.a0AfH6SMBx-abc"),
    "Hugging Face": ("hf_abcdefghijklmnopqrst", "hf_abcdefghijklmnopqrst"),
    "Slack": ("xoxb-1234567890-abcdefghij", "xoxb-1234567890-abcdefghij"),
    "Slack hook": ("https://hooks.slack.com/services/T00/B00/XXXX", "T00/B00/XXXX"),
    "Stripe": ("sk_live_abcdefgh1234", "sk_live_abcdefgh1234"),
    "JWT": ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc-_1", "eyJzdWIiOiIxIn0"),
    "bearer": ("Authorization: Bearer topsecretvalue", "topsecretvalue"),
    "bearer in a sentence": ("sent with bearer abc123 to", "abc123"),
    "basic": ("authorization: Basic YW5uOmh1bnRlcjI=", "YW5uOmh1bnRlcjI="),
    "URL": ("cannot open postgres://ann:hunter2@db/x", "hunter2"),
    "URL without user": ("redis://:hunter2@cache:6379", "hunter2"),
    "query": ("GET /x?token=abcdefgh&y=1", "abcdefgh"),
    "pair": ("api_key=abcdefgh", "abcdefgh"),
    "pair with spaces": ("Password : hunter2", "hunter2"),
    "pair in JSON": ('{"client_secret": "abcdefgh"}', "abcdefgh"),
    "token pair": ("token: abc123def", "abc123def"),
    "environment dump": ("MY_APP_TOKEN=abcdefgh", "abcdefgh"),
    "private key": (
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----",
        "MIIE",
    ),
    "private key, cut": ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaA", "b3BlbnNzaA"),
    "PGP key": ("-----BEGIN PGP PRIVATE KEY BLOCK-----\nlQdGBF", "lQdGBF"),
    "variable of a key": ("AZURE_OPENAI_KEY=0a1b2c3d4e5f60718293", "0a1b2c3d4e5f60718293"),
    "variable of a key, exported": ("export MY_KEY='Zz9-yy8-xx7'", "Zz9-yy8-xx7"),
    "variable of a key in JSON": ('{"COHERE_KEY": "q1w2e3r4t5"}', "q1w2e3r4t5"),
    "variable of a key in YAML": ("SERVICE_KEY: q1w2e3r4t5", "q1w2e3r4t5"),
    "variable of a password": ("DB_PASS=hunter2pass", "hunter2pass"),
    "key of a provider": ("openai_key = 'q1w2e3r4t5'", "q1w2e3r4t5"),
    "subscription": ("Ocp-Apim-Subscription-Key: 0a1b2c3d4e5f", "0a1b2c3d4e5f"),
    "cookies": ("Cookie: sid=s3cr3tvalue; theme=dark", "s3cr3tvalue"),
    "a cookie that is set": ("Set-Cookie: sid=s3cr3tvalue; Path=/; HttpOnly", "s3cr3tvalue"),
    "cookies in JSON": ('{"cookie": "a=1; sid=s3cr3tvalue"}', "s3cr3tvalue"),
    "cookie of a framework": (
        "sent PHPSESSID=r2t5uvjq435r4q7ib3vtdjq120",
        "r2t5uvjq435r4q7ib3vtdjq120",
    ),
    "cookies around one of a framework": (
        "Cookie: a=1; PHPSESSID=r2t5uvjq435r; sid=s3cr3tvalue",
        "s3cr3tvalue",
    ),
    "option": ("mysql --password hunter2pass db", "hunter2pass"),
    "option with a token": ("run --api-key=q1w2e3r4t5", "q1w2e3r4t5"),
    "curl": ("curl -u ann:hunter2pass https://x", "hunter2pass"),
    "URL of a database": ("postgres://ann:hunter2pass@db/prod", "hunter2pass"),
    "URL with a token": ("https://q1w2e3r4t5y6u7i8o9p0aa@git.example/x", "q1w2e3r4t5y6u7i8o9p0aa"),
}

_64 = "q1w2e3r4t5y6u7i8" * 4  # letters and digits, as long as you like
FORMS = {  # as published by those who issue them
    "xAI": f"xai-{_64}",
    "Perplexity": f"pplx-{_64[:48]}",
    "NVIDIA": f"nvapi-{_64[:20]}_-{_64[:40]}",
    "Together": f"tgp_v1_{_64[:43]}",
    "Fireworks": f"fw_{_64[:22]}",
    "Cerebras": f"csk-{_64[:48]}",
    "Groq": f"gsk_{_64[:52]}",
    "OpenRouter": f"sk-or-v1-{_64}",
    "ElevenLabs": f"sk_{'0a1b2c3d' * 6}",
    "Voyage": f"pa-{_64[:43]}",
    "Jina": f"jina_{_64[:60]}",
    "Tavily": f"tvly-dev-{_64[:32]}",
    "Firecrawl": f"fc-{'0a1b2c3d' * 4}",
    "E2B": f"e2b_{'0a1b2c3d' * 5}",
    "LangSmith": f"lsv2_pt_{_64[:32]}_{_64[:10]}",
    "Pinecone": f"pcsk_{_64[:60]}",
    "Databricks": f"dapi{'0a1b2c3d' * 4}",
    "SendGrid": f"SG.{_64[:22]}.{_64[:43]}",
    "Mailgun": f"key-{'0a1b2c3d' * 4}",
    "Mailchimp": f"{'0a1b2c3d' * 4}-us21",
    "Twilio": f"SK{'0a1b2c3d' * 4}",
    "Telegram": f"123456789:AA{_64[:33]}",
    "Discord": f"MTIz{_64[:20]}.GaBcDe.{_64[:30]}",
    "Notion": f"ntn_{_64[:46]}",
    "Linear": f"lin_api_{_64[:40]}",
    "Figma": f"figd_{_64[:40]}",
    "Airtable": f"pat{_64[:14]}.{'0a1b2c3d' * 8}",
    "Shopify": f"shpat_{'0a1b2c3d' * 4}",
    "Square": f"sq0atp-{_64[:22]}",
    "DigitalOcean": f"dop_v1_{'0a1b2c3d' * 8}",
    "Supabase": f"sbp_{'0a1b2c3d' * 5}",
    "PlanetScale": f"pscale_tkn_{_64[:32]}",
    "Vault": f"hvs.{_64[:90]}",
    "Grafana": f"glsa_{_64[:32]}_0a1b2c3d",
    "New Relic": f"NRAK-{_64[:27].upper()}",
    "Sentry": f"sntrys_{_64}",
    "Atlassian": f"ATATT3xFfGF0{_64}",
    "Docker": f"dckr_pat_{_64[:27]}",
    "RubyGems": f"rubygems_{'0a1b2c3d' * 6}",
    "Google client": f"GOCSPX-{_64[:28]}",
    "Stripe webhook": f"whsec_{_64[:32]}",
    "Postman": f"PMAK-{'0a1b2c3d' * 3}-{'0a1b2c3d' * 4}",
    "GitLab runner": f"glrt-{_64[:20]}",
    "age": f"AGE-SECRET-KEY-1{_64[:58].upper()}",
    "Slack app": f"xapp-1-A0-{_64[:20]}",
}


@pytest.mark.parametrize(
    "name,secret",
    [
        *(("AZURE_OPENAI_KEY", True), ("azure_openai_key", True), ("api_key", True)),
        *(("openai-key", True), ("Set-Cookie", True), ("client_secret", True)),
        *(("key", False), ("primary_key", False), ("keys", False), ("tokens", False)),
    ],
)
def test_fields_are_secret_by_their_names(name, secret):
    assert module.is_secret_field(name) is secret


@pytest.mark.parametrize("name", FORMS)
def test_the_form_of_a_key_is_known(name):
    assert scrub(f"before {FORMS[name]} after") == f"before {HIDDEN} after"
    assert scrub(f'{{"x": "{FORMS[name]}"}}') == f'{{"x": "{HIDDEN}"}}'


@pytest.mark.parametrize("name", SECRETS)
def test_what_looks_like_a_secret_is_hidden_and_the_rest_stays(name):
    text, secret = SECRETS[name]
    clean = scrub(f"before {text} after")
    assert secret not in clean
    assert HIDDEN in clean
    assert clean.startswith("before ")


_CHANCE = random.Random(7)
ORDINARY = [
    "The key to a secret: keep it. Ask-and-tell, basic rules, token by token.",
    "Unexpected token: identifier",
    "max_tokens=500 and prompt_tokens: 1200",
    "The bearer of the ring, a bearer token, the bearer bonds.",
    "It has a password field and a token parameter; author: Ann",
    "password=None, token=null, secret=false",
    "scikit-learn, sk-learn-contrib",
    "see https://example.org:8080/a@b?x=1 or mail ann@example.org",
    "the monkey, the keynote, a secretary, keyword=value",
    hashlib.sha256(b"x").hexdigest(),
    hashlib.md5(b"x").hexdigest(),
    str(uuid.UUID(int=_CHANCE.getrandbits(128))),
    "data:image/png;base64," + base64.b64encode(_CHANCE.randbytes(200_000)).decode(),
    json.dumps({"id": 1234567890123456, "commit": hashlib.sha1(b"x").hexdigest()}),
    "2026-11-21T20:46:34Z 192.168.1.1 10:20:30 v1.2.3-rc.4",
    "D:\\data\\keys and /srv/.ssh/id_rsa.pub",
    "xai-interpretability, an explainable xai-toolkit; pplx-70b-online and pplx-7b-chat",
    "The model nvidia/llama-3.1-nemotron-70b-instruct, fireworks_ai/accounts/fw_models, fw_version_2",
    "PRIMARY_KEY=user_id, sort_key: created_at, FOREIGN_KEY = users, cache_key=page:7",
    "Press the ANY_KEY: then wait. MAX_TOKENS=500 EOS_TOKENS: 2",
    "A cookie: a small file. Cookie policy: see below. Accept the cookies; cookie=yes",
    "the primary key = 7, a foreign key: 12, keyboard --password-file secrets.txt",
    "curl -u ann https://example.org:8443/a, ratio 3:4, at 10:30 -user ann",
    "pat-down, pa-rty, key-value, SG.example, fc-barcelona, jina_ai, tvly-search, e2b_code",
    "dapi, SK-II, MTIzabc.def.ghi, hvs.example, lin_api_docs, ntn_test, figd_x",
    "sk_test of sklearn, sk_model_selection_train_test_split, pk_index_of_table",
    "https://docs.example.org/en/latest/page@v2 and git@github.com:ann/project.git",
    "12345:AAPL 123456789:example, http://localhost:8000/x@y",
    "import { key } from './secret-santa'; const tokenCount = 12; token_count: 7",
    "password reset, passwords: see the manual, reset your password here",
]


@pytest.mark.parametrize("text", ORDINARY, ids=range(len(ORDINARY)))
def test_ordinary_text_stays_as_it_is(text):
    assert scrub(text) is text


@given(st.text(alphabet=st.characters(categories=["L", "Zs", "Po"]), max_size=200))
def test_text_without_digits_and_signs_stays_or_is_hidden_whole(text):
    clean = scrub(text)
    assert clean == text or HIDDEN in clean
    assert scrub(clean) == clean


@pytest.mark.thorough
@pytest.mark.parametrize(
    "piece",
    [
        "a-",
        "sk-",
        "token: ",
        'api_key="',
        "eyJaaaaaaaa.",
        "-----BEGIN PRIVATE KEY-----",
        "://a:",
        "x",
    ],
)
def test_a_megabyte_of_anything_takes_linear_time(piece):
    def seconds(size: int) -> float:
        text = piece * (size // len(piece))
        started = time.process_time()
        scrub(text)
        return time.process_time() - started

    assert seconds(1_000_000) < max(3.0, 40 * seconds(100_000))


def test_registered_values_are_hidden_in_every_form():
    register_secret('pass"word/4711 €')
    for form in ('pass"word/4711 €', 'pass\\"word/4711 €', 'pass\\"word/4711 \\u20ac'):
        assert scrub(f"<{form}>") == f"<{HIDDEN}>"
    assert scrub("<pass%22word%2F4711%20%E2%82%AC>") == f"<{HIDDEN}>"


def test_a_longer_value_is_hidden_before_one_that_is_part_of_it():
    register_secrets(["abcd-efgh", "abcd-efgh-ijkl"])
    assert scrub("abcd-efgh-ijkl") == HIDDEN


def test_a_short_value_cannot_be_registered():
    with pytest.raises(ValueError, match="8 characters"):
        register_secret("1234567")
    with pytest.raises(ToolDefinitionError, match="is the environment variable set"):
        register_secret(None)  # type: ignore[arg-type]
    register_secrets(["1234567", ""])
    assert scrub("1234567") == "1234567"


def test_values_of_the_environment_are_hidden_by_their_names(monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", VALUE)
    monkeypatch.setenv("PWD", "/srv/project")
    assert scrub(f"{VALUE} in /srv/project") == f"{HIDDEN} in /srv/project"


def test_of_settings_only_what_is_secret_beyond_doubt_counts():
    settings = {
        "API_TOKEN": "short-token",
        "Authorization": "Bearer my-own-token",
        "X-Gateway": "f81d4fae7dec11d0a765",
        "DATABASE_URL": "postgres://ann:hunter2-pw@db/x",
        "HOME_FOLDER": "/srv/files/projects-2026-11",
        "TLS_KEY": "/etc/ssl/key-number-1.pem",
        "LEVEL": "information",
        "Accept": "application/json-2026.1",
        "MODEL": "gpt-4.1-mini",
    }
    assert set(configured_secrets(settings)) == {
        "short-token",
        "Bearer my-own-token",
        "my-own-token",
        "f81d4fae7dec11d0a765",
        "hunter2-pw",
    }


def test_the_keys_of_a_model_are_its_secrets(monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", VALUE)
    params = {
        "api_key": "key-of-the-model",
        "max_tokens": 5,
        "extra_headers": {"X-Key": "header-key"},
    }
    assert {"key-of-the-model", "header-key", VALUE} <= set(model_secrets(params))


@pytest.mark.anyio
@pytest.mark.parametrize("limit", [None, 50])
async def test_no_result_of_a_tool_holds_a_configured_secret(limit):
    register_secret(VALUE)

    @tool(max_result_tokens=limit)
    def dump(how: str) -> object:
        """Dump."""
        if how == "raise":
            raise ValueError(f"bad {VALUE}")
        if how == "fail":
            raise ToolError(f"bad {VALUE}")
        results = {
            "text": f"the value {VALUE}",
            "json": {"a": [VALUE]},
            "result": ToolResult(VALUE),
            "long": f"{'x' * 1000}{VALUE}{'x' * 1000}",
        }
        return results[how]

    for how in ("text", "json", "result", "long", "raise", "fail"):
        outcome = await call_tool(Action(name="dump", args={"how": how}), {"dump": dump})
        assert VALUE not in outcome.content + (outcome.full or "")
        assert HIDDEN in (outcome.full or outcome.content)


@pytest.mark.anyio
async def test_results_are_not_searched_for_what_only_looks_like_a_secret():
    @tool
    def make_token() -> str:
        """Make a token."""
        return "ghp_abcdefghijklmnop1234"

    outcome = await call_tool(Action(name="make_token"), {"make_token": make_token})
    assert outcome.content == "ghp_abcdefghijklmnop1234"


def test_a_result_of_megabytes_costs_milliseconds():
    register_secrets([f"secret-number-{n}" for n in range(20)])
    text = base64.b64encode(_CHANCE.randbytes(4_000_000)).decode()
    started = time.process_time()
    assert module.hide_in_result(text) is text
    assert time.process_time() - started < 0.5


def test_log_records_hold_no_secrets(caplog):
    logger = get_logger("agent_brain.some_module")
    register_secret(VALUE)
    try:
        raise ValueError(f"inside {VALUE}")
    except ValueError:
        logger.exception("failed with %s", VALUE)
    logger.warning("count %d of %s", 3, "nothing")

    assert VALUE not in caplog.text
    assert f"failed with {HIDDEN}" in caplog.text
    assert f"inside {HIDDEN}" in caplog.text
    assert "count 3 of nothing" in caplog.text
    assert caplog.records[1].args == (3, "nothing")


def test_a_broken_log_call_is_left_to_logging():
    record = logging.LogRecord("x", logging.INFO, "f", 1, "no %d", ("one",), None)
    assert SecretFilter().filter(record) is True


def test_every_logger_of_the_package_hides_secrets():
    import pathlib

    import agent_brain

    root = pathlib.Path(agent_brain.__file__).parents[1]
    for folder in ("brain", "memories", "nets", "states", "tools"):
        for path in (root / folder).rglob("*.py"):
            if path.name != "secrets.py":
                assert "logging.getLogger(__name__)" not in path.read_text(), path
