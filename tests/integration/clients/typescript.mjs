// The MCP TypeScript client at a bridge: prints what it saw, as JSON.
// `node typescript.mjs COMMAND`, in the project's folder.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const transport = new StdioClientTransport({ command: process.argv[2], env: process.env });
const client = new Client({ name: "typescript", version: "1" });
await client.connect(transport);

async function call(name, args) {
  const result = await client.callTool({ name, arguments: args });
  return {
    error: result.isError ?? false,
    content: result.structuredContent ?? null,
    text: result.content.map((part) => part.text).join(""),
  };
}

// Listed first: the client then checks structured content against each tool's output schema.
const { tools } = await client.listTools();
const seen = {
  tools: tools.map((tool) => tool.name),
  pin: await call("memory.pin", { content: "never force-push" }),
  commit: await call("memory.commit_episode", { role: "user", content: "the port is 8080" }),
  recall: await call("memory.recall", { query: "which port" }),
  status: await call("sakur4.status", {}),
  unknown: await call("memory.commit_episode", { role: "user", content: "x", corrects: "ep_0" }),
};
const { resourceTemplates } = await client.listResourceTemplates();
seen.templates = resourceTemplates.map((one) => one.uriTemplate);
const { resources } = await client.listResources();
seen.resources = resources.map((one) => one.uri);
const read = await client.readResource({ uri: resources[0].uri });
seen.anchors = read.contents[0].text;
const prompt = await client.getPrompt({ name: "sakur4_system_preamble" });
seen.prompt = prompt.messages[0].content.text;
try {
  await client.callTool({ name: "memory.recal", arguments: {} });
} catch (error) {
  seen.refusal = { code: error.code, message: error.message };
}
await client.close();
process.stdout.write(JSON.stringify(seen));
