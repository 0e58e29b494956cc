// What the official conformance suite's server scenarios ask of a server, on the official TypeScript
// SDK 2.x: the names and URIs are the suite's. Both eras, or only legacy sessions as older SDKs have.
// node everything.mjs PORT [legacy]
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import {
  acceptedContent,
  completable,
  createMcpHandler,
  createRequestStateCodec,
  fromJsonSchema,
  hostHeaderValidationResponse,
  inputRequired,
  inputResponse,
  isLegacyRequest,
  localhostAllowedHostnames,
  localhostAllowedOrigins,
  McpServer,
  originValidationResponse,
  ResourceTemplate,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";
import { z } from "zod";
import { ADDRESSED, CHOICES, DEFAULTS } from "./schemas.mjs";

const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
const SILENCE = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";
const lists = { ttlMs: 60_000, cacheScope: "public" };

const states = createRequestStateCodec({ key: "a key of a test, which protects nothing" });
const sessions = new Map();
const grown = { tools: false, prompts: false };

const text = (value) => ({ type: "text", text: value });
const image = { type: "image", data: PIXEL, mimeType: "image/png" };
const embedded = (uri, value) => ({ type: "resource", resource: { uri, mimeType: "text/plain", text: value } });
const said = (...content) => ({ messages: content.map((one) => ({ role: "user", content: one })) });
const told = (...content) => ({ content });
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

const question = (requestedSchema, message = "Please tell.") => inputRequired.elicit({ message, requestedSchema });
const generation = (value) =>
  inputRequired.createMessage({ messages: [{ role: "user", content: text(value) }], maxTokens: 50 });
const named = z.object({ name: z.string() });
const confirmed = z.object({ ok: z.boolean() });

// A tool that asks for one thing and tells what came; asks again where nothing fitting did.
function asking(server, name, key, ask, read, inputSchema) {
  const run = (args, { mcpReq }) => {
    const found = read(mcpReq.inputResponses, key);
    if (found === undefined) return inputRequired({ inputRequests: { [key]: ask(args) } });
    return told(text(JSON.stringify(found)));
  };
  const description = "Asks its caller, and tells the answer.";
  server.registerTool(name, { description, inputSchema: inputSchema ?? z.object({}) }, run);
}

const answered = (responses, key) => {
  const found = inputResponse(responses, key);
  return found.kind === "elicit" ? { action: found.action, content: found.content } : undefined;
};
const generated = (responses, key) => {
  const found = inputResponse(responses, key);
  return found.kind === "sampling" ? found.result.content : undefined;
};
const rooted = (responses, key) => {
  const found = inputResponse(responses, key);
  return found.kind === "roots" ? found.roots : undefined;
};
const accepted = (schema) => (responses, key) => acceptedContent(responses, key, schema);

function asks(server) {
  const free = { type: "object", properties: { response: { type: "string" } }, required: ["response"] };
  const message = z.object({ message: z.string() });
  asking(server, "test_elicitation", "answer", (args) => question(free, args.message), answered, message);
  asking(server, "test_streaming_elicitation", "answer", () => question(free), answered);
  asking(server, "test_elicitation_sep1034_defaults", "form", () => question(DEFAULTS), answered);
  asking(server, "test_elicitation_sep1330_enums", "form", () => question(CHOICES), answered);
  const prompt = z.object({ prompt: z.string() });
  asking(server, "test_sampling", "generated", (args) => generation(args.prompt), generated, prompt);
  // Without the capability to sample, the SDK itself refuses what this returns.
  asking(server, "test_missing_capability", "generated", () => generation("Greet."), generated);
  asking(server, "test_input_required_result_elicitation", "user_name", () => question(named), accepted(named));
  const capital = () => generation("What is the capital of France?");
  asking(server, "test_input_required_result_sampling", "capital_question", capital, generated);
  asking(server, "test_input_required_result_list_roots", "client_roots", inputRequired.listRoots, rooted);
}

// Tools whose state travels with the caller, sealed.
function rounds(server) {
  const tool = (name, run) => server.registerTool(name, { description: "Asks in rounds." }, (ctx) => run(ctx.mcpReq, ctx));
  const confirm = async (state) =>
    inputRequired({ inputRequests: { confirm: question(confirmed) }, requestState: await states.mint(state) });
  for (const name of ["request_state", "tampered_state"])
    tool(`test_input_required_result_${name}`, ({ inputResponses, requestState }) =>
      requestState() && acceptedContent(inputResponses, "confirm", confirmed) ? told(text("state-ok")) : confirm("first"),
    );
  tool("test_input_required_result_multiple_inputs", async ({ inputResponses }) => {
    const keys = ["user_name", "greeting", "client_roots"];
    if (keys.every((key) => inputResponses?.[key])) return told(text("All three came."));
    const [user_name, greeting, client_roots] = [question(named), generation("Greet."), inputRequired.listRoots()];
    return inputRequired({ inputRequests: { user_name, greeting, client_roots }, requestState: await states.mint("all") });
  });
  tool("test_input_required_result_multi_round", async ({ inputResponses, requestState }) => {
    const before = requestState() ?? { round: 0 };
    const step = (round, schema, more) =>
      states.mint({ round, ...more }).then((requestState) =>
        inputRequired({ inputRequests: { [`step${round}`]: question(schema, `Step ${round}`) }, requestState }),
      );
    const coloured = z.object({ color: z.string() });
    const name = acceptedContent(inputResponses, "step1", named)?.name;
    if (before.round === 1 && name) return step(2, coloured, { name });
    const color = acceptedContent(inputResponses, "step2", coloured)?.color;
    return before.round === 2 && color ? told(text(`${before.name} chose ${color}.`)) : step(1, named);
  });
  tool("test_input_required_result_capabilities", async ({ envelope }) => {
    const can = envelope?.["io.modelcontextprotocol/clientCapabilities"] ?? {};
    const inputRequests = {
      ...(can.sampling && { sample: generation("Greet.") }),
      ...(can.elicitation && { ask: question(named) }),
    };
    return inputRequired({ inputRequests, requestState: await states.mint("by capability") });
  });
}

function tools(server) {
  const tool = (name, run, inputSchema) => server.registerTool(name, { description: `The suite's ${name}.`, inputSchema }, run);
  tool("test_simple_text", () => told(text("Some text.")));
  tool("test_image_content", () => told(image));
  tool("test_audio_content", () => told({ type: "audio", data: SILENCE, mimeType: "audio/wav" }));
  tool("test_embedded_resource", () => told(embedded("test://embedded-resource", "It came along.")));
  tool("test_multiple_content_types", () => told(text("Three kinds."), image, embedded("test://mixed", "The third.")));
  tool("test_error_handling", () => {
    throw new Error("This tool always fails.");
  });
  tool("test_tool_with_logging", async ({ mcpReq }) => {
    for (const step of ["begun", "going on", "done"]) {
      await mcpReq.log("info", step);
      await pause(50);
    }
    return told(text("logged"));
  });
  tool("test_logging_tool", async ({ mcpReq }) => {
    await mcpReq.log("info", "said once");
    return told(text("logged"));
  });
  tool("test_tool_with_progress", async ({ mcpReq }) => {
    const progressToken = mcpReq._meta?.progressToken;
    for (const progress of progressToken === undefined ? [] : [0, 50, 100]) {
      await mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress, total: 100 } });
      await pause(50);
    }
    return told(text(String(progressToken)));
  });
  tool("test_reconnection", async ({ mcpReq, http }) => {
    await mcpReq.log("info", "leaving");
    http?.closeSSE?.(); // no stream of 2026-07-28 is found again
    await pause(100);
    return told(text("The stream was left and found again."));
  });
  const region = { type: "string", "x-mcp-header": "Region" };
  const headed = fromJsonSchema({ type: "object", properties: { region } });
  tool("test_x_mcp_header", ({ region }) => told(text(`region: ${region}`)), headed);
  tool("json_schema_2020_12_tool", () => told(text("valid")), fromJsonSchema(ADDRESSED));
  if (grown.tools) tool("test_dynamic_tool", () => told(text("grown")));
  tool("test_trigger_tool_change", async () => {
    grown.tools = !grown.tools;
    handler.notify.toolsChanged();
    return told(text("The tools are others now."));
  });
  tool("test_trigger_prompt_change", async () => {
    grown.prompts = !grown.prompts;
    handler.notify.promptsChanged();
    return told(text("The prompts are others now."));
  });
}

function resources(server) {
  const plain = { mimeType: "text/plain" };
  const read = (value) => async (uri) => ({ contents: [{ uri: uri.href, ...plain, text: value }] });
  server.registerResource("static-text", "test://static-text", plain, read("Text that never changes."));
  server.registerResource("watched", "test://watched-resource", plain, read("Text that might change."));
  server.registerResource("static-binary", "test://static-binary", { mimeType: "image/png" }, async (uri) => ({
    contents: [{ uri: uri.href, mimeType: "image/png", blob: PIXEL }],
  }));
  const template = new ResourceTemplate("test://template/{id}/data", { list: undefined });
  server.registerResource("template", template, { mimeType: "application/json" }, async (uri, { id }) => ({
    contents: [{ uri: uri.href, mimeType: "application/json", text: JSON.stringify({ id }) }],
  }));
  for (const verb of ["subscribe", "unsubscribe"]) server.server.setRequestHandler(`resources/${verb}`, async () => ({}));
}

function prompts(server) {
  const prompt = (name, run, argsSchema) => server.registerPrompt(name, { description: `The suite's ${name}.`, argsSchema }, run);
  prompt("test_simple_prompt", () => said(text("A prompt without arguments.")));
  const word = completable(z.string(), (begun) => ["paris", "park", "party"].filter((one) => one.startsWith(begun)));
  const two = z.object({ arg1: word, arg2: z.string() });
  prompt("test_prompt_with_arguments", ({ arg1, arg2 }) => said(text(`First ${arg1}, then ${arg2}.`)), two);
  const one = z.object({ resourceUri: z.string() });
  const about = ({ resourceUri }) => said(embedded(resourceUri, "It came along."), text("Look at it."));
  prompt("test_prompt_with_embedded_resource", about, one);
  prompt("test_prompt_with_image", () => said(image, text("Look at it.")));
  const context = z.object({ context: z.string() });
  prompt("test_input_required_result_prompt", ({ mcpReq }) => {
    const found = acceptedContent(mcpReq.inputResponses, "user_context", context);
    if (found) return said(text(`In view of ${found.context}.`));
    return inputRequired({ inputRequests: { user_context: question(context) } });
  });
  if (grown.prompts) prompt("test_dynamic_prompt", () => said(text("grown")));
}

function made() {
  const changing = { listChanged: true };
  const server = new McpServer(
    { name: "typescript-everything", version: "1.0.0" },
    {
      capabilities: { tools: changing, prompts: changing, resources: { subscribe: true, ...changing }, logging: {}, completions: {} },
      requestState: { verify: states.verify },
      cacheHints: { "tools/list": lists, "prompts/list": lists, "resources/list": lists, "resources/templates/list": lists },
    },
  );
  for (const part of [tools, asks, rounds, resources, prompts]) part(server);
  return server;
}

const handler = createMcpHandler(made, { legacy: "reject" });

// What a legacy stream told, so that it can be told again; for the life of a session.
function kept() {
  const events = [];
  return {
    storeEvent: async (stream, message) => String(events.push({ stream, message }) - 1),
    getStreamIdForEventId: async (id) => events[Number(id)]?.stream,
    replayEventsAfter: async (id, { send }) => {
      const { stream } = events[Number(id)];
      for (const [number, event] of events.entries()) {
        const later = number > Number(id) && event.stream === stream;
        if (later && event.message.jsonrpc) await send(String(number), event.message);
      }
      return stream;
    },
  };
}

async function older(request) {
  const id = request.headers.get("mcp-session-id");
  if (id && !sessions.has(id)) return new Response(null, { status: 404 });
  const transport = sessions.get(id) ?? (await begun());
  return transport.handleRequest(request);
}

async function begun() {
  const transport = new WebStandardStreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: (id) => sessions.set(id, transport),
    onsessionclosed: (id) => sessions.delete(id),
    eventStore: kept(),
    retryInterval: 100,
  });
  await made().connect(transport);
  return transport;
}

async function found(request) {
  const refused =
    hostHeaderValidationResponse(request, localhostAllowedHostnames()) ??
    originValidationResponse(request, localhostAllowedOrigins());
  if (refused) return refused;
  return process.argv[3] === "legacy" || (await isLegacyRequest(request)) ? older(request) : handler.fetch(request);
}

createServer(async (request, response) => {
  const left = new AbortController();
  response.on("close", () => left.abort());
  const parts = [];
  for await (const part of request) parts.push(part);
  const body = parts.length ? Buffer.concat(parts) : undefined;
  const { method, headers } = request;
  const answer = await found(new Request(`http://${headers.host}${request.url}`, { method, headers, body, signal: left.signal }));
  response.writeHead(answer.status, Object.fromEntries(answer.headers)).flushHeaders();
  try {
    if (answer.body) for await (const part of answer.body) response.write(part);
  } catch {} // its reader left
  response.end();
}).listen(Number(process.argv[2]), "127.0.0.1");
