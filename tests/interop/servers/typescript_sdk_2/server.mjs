// A server on the official TypeScript SDK 2.x: both eras, era pinned by the opening exchange.
import { McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";

serveStdio(() => {
  const server = new McpServer({ name: "typescript-sdk-2", version: "1.0.0" });
  server.registerTool(
    "divide",
    { description: "Divide one number by another.", inputSchema: z.object({ a: z.number(), b: z.number() }) },
    async ({ a, b }) => ({ content: [{ type: "text", text: String(a / b) }] }),
  );
  return server;
});
