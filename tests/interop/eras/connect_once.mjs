// The same with @modelcontextprotocol/client 2.x in its dual-era mode, in a folder that has it.
// connect_once.mjs stdio '["argv", …]'   or   connect_once.mjs http '"URL"'
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
const require = createRequire(process.cwd() + "/");
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const { Client, StreamableHTTPClientTransport } = await load("@modelcontextprotocol/client");
const { StdioClientTransport } = await load("@modelcontextprotocol/client/stdio");
const target = JSON.parse(process.argv[3]);
const transport =
  process.argv[2] === "stdio"
    ? new StdioClientTransport({ command: target[0], args: target.slice(1) })
    : new StreamableHTTPClientTransport(new URL(target));
const client = new Client({ name: "eras", version: "1" }, { versionNegotiation: { mode: "auto", probe: { timeoutMs: 10000 } } });
const began = performance.now();
const seconds = () => +((performance.now() - began) / 1000).toFixed(2);
let result;
try {
  const limit = new Promise((_, reject) => setTimeout(() => reject(new Error("gave up after 25 s")), 25000).unref());
  await Promise.race([client.connect(transport), limit]);
  const version = client.getNegotiatedProtocolVersion?.() ?? "";
  result = { era: version >= "2026" ? "modern" : "legacy", s: seconds() };
} catch (error) {
  result = { error: `${error.code ?? error.name}: ${error.message}`.slice(0, 110), s: seconds() };
}
console.log("RESULT " + JSON.stringify(result));
await client.close().catch(() => {});
process.exit(0);
