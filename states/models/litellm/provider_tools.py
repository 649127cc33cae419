"""The tools that providers run themselves: how they are asked for, and what they did."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias, get_args
from zlib import crc32

from agent_brain.common.ids import new_id
from agent_brain.states.models.llm import ProviderCall

ProviderTool: TypeAlias = Literal["web_search", "code_execution"]

_INSTEAD = {
    "web_search": "http_get_tool() of agent_brain.tools.builtin, or a search tool of an MCP server",
    "code_execution": "calculate of agent_brain.tools.builtin, or a tool of yours that runs code",
}
_Forms: TypeAlias = Mapping[str, dict[str, Any]]
_GEMINI: _Forms = {"web_search": {"googleSearch": {}}, "code_execution": {"codeExecution": {}}}
_CLAUDE: _Forms = {
    "web_search": {"type": "web_search_20250305", "name": "web_search"},
    "code_execution": {"type": "code_execution_20250825", "name": "code_execution"},
}
_OF_CLAUDE = (None, "anthropic", "azure_ai", "litellm_proxy")  # pass Claude's tools on
_RESPONSES: _Forms = {
    "web_search": {"type": "web_search"},
    "code_execution": {"type": "code_interpreter", "container": {"type": "auto"}},
}


def faults_in(tools: object) -> list[str]:
    """Return what is wrong with tools that are given in the form of an API; empty if nothing is."""
    if tools is None or (
        isinstance(tools, list | tuple) and all(isinstance(t, dict) for t in tools)
    ):
        return []
    found = "tools must be a list of dicts in the form of the provider's API, such as "
    return [found + "[{'type': 'file_search', …}]; functions are tools of the brain"]


def names_of(names: Iterable[str], tools: Iterable[Mapping[str, Any]] | None) -> list[str]:
    """Return the names of the tools that a provider runs, also of those in the form of its API."""
    return [*names, *(str(tool["name"]) for tool in tools or () if "name" in tool)]


def wire_tools(model: str, provider: str | None, names: Iterable[str]) -> list[dict[str, Any]]:
    """Return tools of a model's provider in the form of its API.

    Raises:
        ValueError: There is no such tool, or the provider does not have it.
    """
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise ValueError(f"provider_tools={names!r}: it must be a list, such as ['web_search']")
    known: _Forms = {}
    if provider == "vertex_ai" and "claude" in model:
        known = {"web_search": _CLAUDE["web_search"]}
    elif provider in _OF_CLAUDE and (provider == "anthropic" or "claude" in model):
        known = _CLAUDE
    elif provider == "gemini" or (provider == "vertex_ai" and "gemini" in model):
        known = _GEMINI
    elif provider in ("openai", "azure") and "/responses/" in model:
        known = _RESPONSES
    found = []
    for name in names:
        if name not in get_args(ProviderTool):
            tools = ", ".join(map(repr, get_args(ProviderTool)))
            raise ValueError(
                f"provider_tools has {name!r}: it may have {tools}; other tools of a provider are "
                "given in its own form, as in tools=[{'type': 'file_search', …}]"
            )
        if name not in known:
            why = f"{model!r} has no {name} of its provider"
            if provider in ("openai", "azure"):
                responses = model.replace(f"{provider}/", f"{provider}/responses/", 1)
                why += f" over this API: name it {responses!r}"
            raise ValueError(f"{why}. In its place, give the brain a tool: {_INSTEAD[name]}")
        found.append(known[name])
    return found


def claude_calls(
    blocks: Sequence[Mapping[str, Any]], asked: Mapping[str, tuple[str, dict[str, Any]]]
) -> Iterator[ProviderCall]:
    """Yield the calls whose results are in blocks of Claude.

    Args:
        blocks: The results.
        asked: Names and arguments of the calls by their IDs.
    """
    for block in blocks:
        call_id = str(block.get("tool_use_id"))
        if call_id in asked:
            yield ProviderCall(call_id, *asked[call_id], _readable(block.get("content")))


def response_call(item: Mapping[str, Any]) -> ProviderCall | None:
    """Return the call that is an item of an OpenAI response; None if it is none of the provider."""
    kind = str(item.get("type"))
    name = kind.removesuffix("_call")
    if name == kind or name in ("function", "custom_tool", "computer", "local_shell", "shell"):
        return None
    args = dict(item.get("action") or {})
    args |= {key: item[key] for key in ("queries", "code", "name", "arguments") if item.get(key)}
    result = None if kind == IMAGE else item.get("outputs") or item.get("results")
    result = result or item.get("output") or item.get("error")
    return ProviderCall(str(item.get("id")), _NAMES.get(name, name), args, result)


IMAGE = "image_generation_call"
_NAMES = {"code_interpreter": "code_execution"}  # as others call it


def gemini_calls(candidate: Mapping[str, Any], code: dict[str, Any]) -> Iterator[ProviderCall]:
    """Yield the calls in a candidate of Gemini: code that ran, and searches.

    Args:
        candidate: The candidate, of one chunk.
        code: The code of an earlier chunk whose result was not there yet; is kept up to date.
    """
    for part in (candidate.get("content") or {}).get("parts") or ():
        code.update(part.get("executableCode") or {})
        if (result := part.get("codeExecutionResult")) is not None:
            yield ProviderCall(new_id("call"), "code_execution", dict(code), result)
    grounding = candidate.get("groundingMetadata")
    queries = grounding.get("webSearchQueries") if isinstance(grounding, dict) else None
    if queries:  # which each chunk may repeat
        search_id = f"search_{crc32(repr(queries).encode()):08x}"
        yield ProviderCall(search_id, "web_search", {"queries": queries})


def placed(cited: Any, place_of: Callable[[int], int]) -> Any:
    """Return a citation with other places in the text."""
    if not isinstance(cited, Mapping):
        return cited
    places = {
        name: place_of(cited[name])
        for name in ("start_index", "end_index")
        if isinstance(cited.get(name), int)
    }
    page = cited.get("url_citation")
    inner = {} if page is None else {"url_citation": placed(page, place_of)}
    return {**cited, **places, **inner}


def _readable(content: Any) -> Any:
    """Return the result of a call without what only the provider can read."""
    if isinstance(content, list):
        return [_readable(item) for item in content]
    if isinstance(content, Mapping):
        return {k: _readable(v) for k, v in content.items() if not k.startswith("encrypted_")}
    return content
