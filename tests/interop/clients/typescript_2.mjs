// The official TypeScript client 2.x, in a folder that has it.
// node typescript_2.mjs MODE URL      MODE: auto or legacy
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
const require = createRequire(process.cwd() + "/");
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const { Client, StreamableHTTPClientTransport } = await load("@modelcontextprotocol/client");

const LIMIT_MS = 40000; // each takes well under a second on an idle machine
const features = {};
let changed;
const hasChanged = new Promise((resolve) => (changed = resolve));
const client = new Client(
  { name: "interop", version: "1" },
  {
    versionNegotiation: { mode: process.argv[2] },
    listChanged: { tools: { onChanged: (error, tools) => changed(error ?? tools) } },
  },
);

const expect = (part, whole) => {
  const text = JSON.stringify(whole);
  if (!text.includes(part)) throw new Error(`${part} is not in ${text.slice(0, 500)}`);
};
const text = async (name, given = {}, options = {}) =>
  (await client.callTool({ name, arguments: given }, options)).content[0].text;

async function tries(feature, trial) {
  const limit = new Promise((_, no) => setTimeout(() => no(new Error("took too long")), LIMIT_MS).unref());
  try {
    await Promise.race([trial(), limit]);
    features[feature] = "ok";
  } catch (error) {
    features[feature] = `${error.name}: ${error.message}`;
  }
}

await client.connect(new StreamableHTTPClientTransport(new URL(process.argv[3])));
features.version = client.getNegotiatedProtocolVersion();

await tries("list", async () => {
  const names = (await client.listTools()).tools.map((tool) => tool.name);
  for (const name of ["add", "subtract"]) expect(`"${name}"`, names);
  expect('"welcome"', await client.listPrompts());
  expect('"memo://hello"', await client.listResources());
});
await tries("call", async () => {
  expect("5", await text("add", { a: 2, b: 3 }));
  expect("-1", await text("subtract", { a: 2, b: 3 }));
});
await tries("prompt", async () => {
  expect("Welcome Ada", await client.getPrompt({ name: "welcome", arguments: { name: "Ada" } }));
  expect("hello to Ada", await client.getPrompt({ name: "greet", arguments: { name: "Ada" } }));
});
await tries("resource", async () => {
  expect("a memo for all", await client.readResource({ uri: "memo://hello" }));
  expect("hello", await client.readResource({ uri: "note://hello" }));
});
await tries("progress", async () => {
  const seen = [];
  expect("there", await text("steps", {}, { onprogress: (one) => seen.push(one.message) }));
  expect('["step 1","step 2","step 3"]', seen);
});
await tries("cancel", async () => {
  const before = +(await text("lingered"));
  const given = new AbortController();
  const onprogress = () => given.abort();
  await text("linger", {}, { signal: given.signal, onprogress }).catch(() => {});
  while (+(await text("lingered")) !== before + 1);
});
await tries("list change", async () => {
  const name = await text("sprout");
  expect(`"${name}"`, await hasChanged);
});

console.log(JSON.stringify(features));
await client.close().catch(() => {});
process.exit(0);
