// Plays one session of a drop-in tool set through the official TypeScript SDK and prints what came back, a JSON line a
// call. Started by test_typescript.py: node session.mjs STEPS-FILE COMMAND ARGUMENT...

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(`${process.env.TASKBUS_NPM}/`);
const load = (name) => import(pathToFileURL(require.resolve(`@modelcontextprotocol/sdk/client/${name}.js`)));
const { Client } = await load("index");
const { StdioClientTransport } = await load("stdio");

/** A value of a call with ids where names stand. */
function resolved(value, names) {
  if (typeof value === "string") return names.get(value) ?? value;
  if (Array.isArray(value)) return value.map((item) => resolved(item, names));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, resolved(item, names)]));
}

const [file, command, ...args] = process.argv.slice(2);
const client = new Client({ name: "typescript", version: "1" });
await client.connect(new StdioClientTransport({ command, args, env: process.env }));
await client.listTools();
const names = new Map();
for (const step of JSON.parse(readFileSync(file, "utf8"))) {
  const result = await client.callTool({ name: step.tool, arguments: resolved(step.arguments, names) });
  if (step.binds) names.set(`$${step.binds}`, result.structuredContent.task.id);
  const { content, structuredContent, isError } = result;
  console.log(JSON.stringify({ text: content[0].text, data: structuredContent, refused: isError === true }));
}
await client.close();
