"""The pages that a model cites, read from the forms of the providers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agent_brain.common.text import clean

CITATIONS = "citations"  # in the metadata of a Finish, in the provider's form
_PAGE = re.compile(r"https?://[^\s/]\S*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class CitedSource:
    """A page that a model cites.

    Attributes:
        url: Its address, which begins with ``http:`` or ``https:``.
        title: Its title; empty if the provider does not say.
        places: Where in the text of the response it is cited, as far as the provider says: pairs of
            the first character and the one behind the last.
    """

    url: str
    title: str = ""
    places: tuple[tuple[int, int], ...] = ()


def sources_of(citations: object) -> tuple[CitedSource, ...]:
    """Return the pages in what a provider says of citations, each once.

    A citation is an address, as of Perplexity, or an object with ``url`` and ``title``, as of
    Anthropic and OpenAI's Responses, which Chat Completions have in ``url_citation``.
    """
    titles: dict[str, str] = {}
    places: dict[str, list[tuple[int, int]]] = {}
    for cited in citations if isinstance(citations, Sequence) else ():
        page = cited.get("url_citation", cited) if isinstance(cited, Mapping) else {"url": cited}
        url, title = map(page.get, ("url", "title")) if isinstance(page, Mapping) else ("", "")
        if isinstance(url, str) and _PAGE.fullmatch(url := clean(url)):
            titles[url] = titles.get(url) or (clean(title) if isinstance(title, str) else "")
            start, end = page.get("start_index"), page.get("end_index")
            if isinstance(start, int) and isinstance(end, int) and 0 <= start < end:
                places.setdefault(url, []).append((start, end))
    return tuple(CitedSource(url, title, (*places.get(url, ()),)) for url, title in titles.items())
