"""A server whose tools answer in every way there is."""

from __future__ import annotations

from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolRequestParams,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ListToolsResult,
    ResourceLink,
    TextContent,
    TextResourceContents,
    Tool,
    ToolAnnotations,
)

PIXEL = "iVBORw0KGgo="
ANSWERS: dict[str, CallToolResult] = {
    "text": CallToolResult(content=[TextContent(text="one"), TextContent(text="two")]),
    "image": CallToolResult(
        content=[TextContent(text="Look:"), ImageContent(data=PIXEL, mime_type="image/png")]
    ),
    "torn": CallToolResult(content=[ImageContent(data="!not base64!", mime_type="image/png")]),
    "audio": CallToolResult(content=[AudioContent(data="AAAA", mime_type="audio/wav")]),
    "resources": CallToolResult(
        content=[
            EmbeddedResource(resource=TextResourceContents(uri="note://1", text="a note")),
            EmbeddedResource(
                resource=BlobResourceContents(uri="pic://1", blob=PIXEL, mime_type="image/gif")
            ),
            EmbeddedResource(resource=BlobResourceContents(uri="zip://1", blob="AAAA")),
            ResourceLink(uri="file:///far", name="far", description="far away"),
        ]
    ),
    "structured": CallToolResult(content=[], structured_content={"sum": 3, "of": [1, 2]}),
    "both": CallToolResult(content=[TextContent(text="three")], structured_content={"sum": 3}),
    "nothing": CallToolResult(content=[]),
    "failure_with_password": CallToolResult(
        content=[TextContent(text="no route to postgres://ann:hunter2pass@db")], is_error=True
    ),
    "failure": CallToolResult(content=[TextContent(text="no such city")], is_error=True),
    "silent_failure": CallToolResult(content=[], is_error=True),
    "wrong": CallToolResult(content=[TextContent(text="x")], structured_content={"sum": "three"}),
    "capitals": CallToolResult(content=[TextContent(text="AÉ")], structured_content={"word": "AÉ"}),
}
SCHEMA: dict[str, Any] = {"type": "object", "properties": {}}
OUTPUTS: dict[str, dict[str, Any]] = {
    "wrong": {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]},
    "capitals": {"type": "object", "properties": {"word": {"pattern": "^\\p{Lu}+$"}}},
}
HINTS = {
    "text": ToolAnnotations(read_only_hint=True),
    "image": ToolAnnotations(idempotent_hint=True, destructive_hint=True),
    "audio": ToolAnnotations(destructive_hint=False),
}


async def list_tools(context: Any, params: Any) -> ListToolsResult:
    tools = [
        Tool(
            name=name,
            input_schema=SCHEMA,
            output_schema=OUTPUTS.get(name),
            annotations=HINTS.get(name),
        )
        for name in ANSWERS
    ]
    tools.append(Tool(name="broken", input_schema={"type": "object", "properties": 5}))
    return ListToolsResult(tools=tools)


async def call_tool(context: Any, params: CallToolRequestParams) -> CallToolResult:
    return ANSWERS[params.name]


async def main() -> None:
    server = Server("Results", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    import anyio

    anyio.run(main)
