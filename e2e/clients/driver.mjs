// SPDX-License-Identifier: Apache-2.0

// Makes calls with openai-node as its documentation shows it: driver.mjs FOLDER URL, where FOLDER holds node_modules. What goes in
// and out is the same as of driver.py.

import { createRequire } from "node:module";
import { resolve } from "node:path";
import { createInterface } from "node:readline";

const [folder, url] = process.argv.slice(2);
const OpenAI = createRequire(resolve(folder) + "/")("openai");
const client = new OpenAI({ baseURL: url + "/openai/v1", apiKey: "key" });

async function call(c) {
  const options = { headers: c.headers };
  if (c.timeout) options.timeout = c.timeout * 1000;
  if (c.responses) return events(c, options);
  const body = { model: c.model || "gpt-4o", messages: [{ role: "user", content: "hi" }], max_tokens: c.max_tokens, stream: c.stream };
  if (c.usage) body.stream_options = { include_usage: true };
  const answer = await client.chat.completions.create(body, options);
  if (!c.stream) return { text: answer.choices[0].message.content, usage: Boolean(answer.usage) };
  const deltas = [];
  let usage = false;
  for await (const chunk of answer) {
    usage ||= Boolean(chunk.usage);
    for (const choice of chunk.choices) if (choice.delta.content) deltas.push(choice.delta.content);
  }
  return { text: deltas.join(""), deltas: deltas.length, usage };
}

async function events(c, options) {
  const body = { model: "gpt-4o", input: "hi", max_output_tokens: c.max_tokens, stream: true };
  const deltas = [];
  let usage = false;
  for await (const event of await client.responses.create(body, options)) {
    if (event.type === "response.output_text.delta") deltas.push(event.delta);
    if (event.type === "response.completed") usage = Boolean(event.response.usage);
  }
  return { text: deltas.join(""), deltas: deltas.length, usage };
}

console.log("ready");
for await (const line of createInterface({ input: process.stdin })) {
  const began = performance.now();
  let said;
  try {
    said = { ok: true, ...(await call(JSON.parse(line))) };
  } catch (e) {
    said = { ok: false, error: e.constructor.name, status: e.status ?? 0, message: e.message };
  }
  console.log(JSON.stringify({ ...said, seconds: (performance.now() - began) / 1000 }));
}
