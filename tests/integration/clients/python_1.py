"""The MCP Python client of version 1 at a bridge: prints what it saw, as JSON.

Run by the Python of an environment of its own: `python_1.py COMMAND`, in the project's folder.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import sys
from typing import Any

# Another version than the one that this repository's types are checked against.
mcp: Any = importlib.import_module("mcp")
stdio: Any = importlib.import_module("mcp.client.stdio")


async def main(command: str) -> dict[str, Any]:
    """List and use everything."""
    parameters = mcp.StdioServerParameters(command=command, env=dict(os.environ))
    async with (
        stdio.stdio_client(parameters) as (reading, writing),
        mcp.ClientSession(reading, writing) as session,
    ):
        hello = await session.initialize()
        tools = await session.list_tools()

        async def call(name: str, **arguments: Any) -> dict[str, Any]:
            result = await session.call_tool(name, arguments)
            text = "".join(part.text for part in result.content)
            return {
                "error": result.isError,
                "content": result.structuredContent,
                "text": text,
            }

        seen: dict[str, Any] = {
            "version": hello.protocolVersion,
            "tools": [tool.name for tool in tools.tools],
            "pin": await call("memory.pin", content="never force-push"),
            "commit": await call("memory.commit_episode", role="user", content="the port is 8080"),
            "recall": await call("memory.recall", query="which port"),
            "status": await call("sakur4.status"),
            "unknown": await call(
                "memory.commit_episode", role="user", content="x", corrects="ep_0"
            ),
        }
        templates = await session.list_resource_templates()
        seen["templates"] = [one.uriTemplate for one in templates.resourceTemplates]
        resources = await session.list_resources()
        seen["resources"] = [str(one.uri) for one in resources.resources]
        read = await session.read_resource(resources.resources[0].uri)
        seen["anchors"] = read.contents[0].text
        prompt = await session.get_prompt("sakur4_system_preamble")
        seen["prompt"] = prompt.messages[0].content.text
        try:
            await session.call_tool("memory.recal", {})
        except mcp.McpError as error:
            seen["refusal"] = {"code": error.error.code, "message": error.error.message}
        return seen


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asyncio.run(main(sys.argv[1]))))
