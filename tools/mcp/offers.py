"""Resources and prompts of a server, as tools. Needs the extra ``mcp``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from mcp import Client
from mcp_types import (
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    Prompt,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextContent,
    Tool,
    ToolAnnotations,
)

from agent_brain.tools.mcp.names import fitting
from agent_brain.tools.schemas import object_schema

MOST_PAGES = 1000
HARMLESS = ToolAnnotations(read_only_hint=True)


class Offer(NamedTuple):
    """A tool that the server does not have itself.

    Attributes:
        tool: Its definition.
        run: Runs a call of it.
    """

    tool: Tool
    run: Callable[[Client, dict[str, Any]], Awaitable[CallToolResult]]


async def every(list_page: Callable[..., Awaitable[Any]], field: str) -> list[Any]:
    """Return what a server lists, page by page.

    Args:
        list_page: The method of the client.
        field: The field of a page that holds the items.
    """
    found: list[Any] = []
    cursor: str | None = None
    for _ in range(MOST_PAGES):
        page = await list_page(cursor=cursor, cache_mode="bypass")
        found += getattr(page, field)
        if page.next_cursor is None or page.next_cursor == cursor:
            break
        cursor = page.next_cursor
    return found


def resource_offers(server: str) -> list[Offer]:
    """Return the tools that list and read the resources of a server, as they are at each call."""
    query = _text("Only those with all of these words. Default: all.")
    uri = _text("A URI from the list, or one made of a template there.")
    listing = _tool("list_resources", f"List the resources of {server!r}.", {"query": query})
    reading = _tool("read_resource", f"Read a resource of {server!r}.", {"uri": uri}, ["uri"])
    return [Offer(listing, _list_resources), Offer(reading, _read_resource)]


async def prompt_offers(client: Client) -> list[Offer]:
    """Return a tool for each prompt of a server, with the prompt's arguments."""
    return [_prompt_offer(prompt) for prompt in await every(client.list_prompts, "prompts")]


async def resource_text(client: Client, uri: str) -> str:
    """Return the text of a resource; other contents are described.

    Raises:
        MCPError: The server has no such resource.
    """
    read = await client.read_resource(uri, cache_mode="bypass")
    return "\n\n".join(
        getattr(part, "text", f"[{part.mime_type or 'unknown data'}, which is not text]")
        for part in read.contents
    )


def _tool(
    name: str, description: str, properties: dict[str, Any], required: list[str] | None = None
) -> Tool:
    schema = object_schema(properties, required or [])
    return Tool(name=name, description=description, input_schema=schema, annotations=HARMLESS)


def _text(description: str | None) -> dict[str, Any]:
    return {"type": "string"} | ({"description": description} if description else {})


async def _list_resources(client: Client, args: dict[str, Any]) -> CallToolResult:
    fixed = await every(client.list_resources, "resources")
    templates = await every(client.list_resource_templates, "resource_templates")
    words = args.get("query", "").casefold().split()
    lines = [_line(each) for each in (*fixed, *templates)]
    shown = [line for line in lines if all(word in line.casefold() for word in words)]
    text = "\n".join(shown) or f"None of {len(lines)} resources has these words."
    return CallToolResult(content=[TextContent(text=text if lines else "There are no resources.")])


def _line(resource: Resource | ResourceTemplate) -> str:
    uri = resource.uri if isinstance(resource, Resource) else resource.uri_template
    about = [resource.mime_type] if resource.mime_type else []
    if isinstance(resource, ResourceTemplate):
        about.append("template: replace what is in braces")
    elif resource.size is not None:
        about.append(f"{resource.size:,} bytes")
    told = ": ".join(filter(None, (resource.title or resource.name, resource.description)))
    return " ".join([uri, f"({', '.join(about)})" if about else "-", *told.split()])


async def _read_resource(client: Client, args: dict[str, Any]) -> CallToolResult:
    read: ReadResourceResult = await client.read_resource(args["uri"], cache_mode="bypass")
    return CallToolResult(content=[EmbeddedResource(resource=part) for part in read.contents])


def _prompt_offer(prompt: Prompt) -> Offer:
    arguments = prompt.arguments or []
    told = ": ".join(filter(None, (prompt.title, prompt.description))) or prompt.name
    tool = _tool(
        f"prompt_{fitting(prompt.name)}",
        f"Return instructions that the server has prepared. {told}",
        {each.name: _text(each.description) for each in arguments},
        [each.name for each in arguments if each.required],
    )

    async def get(client: Client, args: dict[str, Any]) -> CallToolResult:
        found = await client.get_prompt(prompt.name, args)
        roles = {message.role for message in found.messages}
        content: list[ContentBlock] = []
        for message in found.messages:
            if roles != {"user"}:
                content.append(TextContent(text=f"{message.role}:"))
            content.append(message.content)
        return CallToolResult(content=content)

    return Offer(tool, get)
