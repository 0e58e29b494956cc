// A server on the official TypeScript SDK 2.x: both eras, era pinned by the opening exchange.
// node server.mjs [http PORT]
import { createServer } from "node:http";
import { completable, createMcpHandler, McpServer, ResourceTemplate } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";

const text = (value) => ({ content: [{ type: "text", text: value }] });
const said = (value) => ({ messages: [{ role: "user", content: { type: "text", text: value } }] });

function made() {
  const server = new McpServer({ name: "typescript-sdk-2", version: "1.0.0" });
  const numbers = z.object({ a: z.number(), b: z.number() });
  server.registerTool(
    "divide",
    { description: "Divide one number by another.", inputSchema: numbers },
    async ({ a, b }) => text(String(a / b)),
  );
  server.registerResource("hello", "note://hello", {}, async (uri) => ({
    contents: [{ uri: uri.href, text: "hello" }],
  }));
  server.registerResource("note", new ResourceTemplate("note://{name}", { list: undefined }), {}, async (uri, { name }) => ({
    contents: [{ uri: uri.href, text: `note of ${name}` }],
  }));
  const names = completable(z.string(), (value) => ["Ada", "Alan"].filter((name) => name.startsWith(value)));
  server.registerPrompt("greet", { argsSchema: z.object({ name: names }) }, ({ name }) => said(`Say hello to ${name}.`));
  return server;
}

async function answer(handler, request, response) {
  const parts = [];
  for await (const part of request) parts.push(part);
  const given = { method: request.method, headers: request.headers, body: parts.length ? Buffer.concat(parts) : undefined };
  const found = await handler.fetch(new Request(`http://${request.headers.host}${request.url}`, given));
  response.writeHead(found.status, Object.fromEntries(found.headers));
  if (found.body) for await (const part of found.body) response.write(part);
  response.end();
}

if (process.argv[2] === "http") {
  const handler = createMcpHandler(made);
  createServer((request, response) => answer(handler, request, response)).listen(+process.argv[3], "127.0.0.1");
} else {
  serveStdio(made);
}
