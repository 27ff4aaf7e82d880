// SPDX-License-Identifier: Apache-2.0

// Writes chat requests with tools, and what npm's openai-chat-tokens 0.2.8 says that they cost with cl100k_base:
//
//	npm i openai-chat-tokens && node tools.mjs > ../testdata/tools.jsonl
import pkg from "openai-chat-tokens";
const { promptTokensEstimate } = pkg;

let seed = 7;
const random = (n) => (seed = (seed * 1103515245 + 12345) % 2147483648) % n;
const pick = (list) => list[random(list.length)];
const words = "city unit date user ticket amount currency path query limit offset filter status owner label region account invoice message channel".split(" ");
const texts = ["The city and state, e.g. San Francisco, CA", "What to look for", "At most so many results.", "ISO 8601 date, such as 2024-05-01", "Whether it's urgent (default: no)",
  "Line one\nline two", "Ein Name mit Umlaut: Müller", "An id like `inv_123`", "Price in USD; never negative!"];
function prop(depth) {
  const p = {};
  if (random(4)) p.description = pick(texts);
  switch (random(depth < 3 ? 8 : 5)) {
    case 0: return { ...p, type: "string" };
    case 1: return { ...p, type: "string", enum: [pick(words), pick(words), "two words"] };
    case 2: return { ...p, type: "integer" };
    case 3: return { ...p, type: "number", enum: [1, 2.5, 10] };
    case 4: return { ...p, type: "boolean" };
    case 5: return { ...p, type: "array", items: prop(depth + 1) };
    case 6: return { ...p, type: "object", ...object(depth + 1) };
    default: return { ...p, anyOf: [prop(depth + 1), { type: "null" }] };
  }
}
function object(depth) {
  const properties = {};
  for (let k = 1 + random(4); k > 0; k--) properties[pick(words) + pick(["", "_id", "Name"])] = prop(depth);
  return { properties, required: Object.keys(properties).filter(() => random(2)) };
}
for (let k = 0; k < 120; k++) {
  const functions = [];
  for (let n = 1 + random(4); n > 0; n--) {
    const f = { name: pick(["get", "find", "create"]) + "_" + pick(words), parameters: { type: "object", ...(random(6) ? object(0) : { properties: {} }) } };
    if (random(5)) f.description = pick(texts) + " " + pick(texts);
    functions.push(f);
  }
  const messages = [{ role: "user", content: "What is the weather in Oslo?" }];
  if (random(2)) messages.unshift({ role: "system", content: pick(["You are a helpful assistant.", "Be brief", "Antworte auf Deutsch, bitte (immer)", ""]) || "x" });
  const function_call = pick([undefined, undefined, "auto", "none", { name: functions[0].name }]);
  const want = promptTokensEstimate({ messages, functions, function_call });
  const choice = typeof function_call === "object" ? { type: "function", function: function_call } : function_call;
  const body = k % 3 ? { model: "gpt-4", messages, tools: functions.map((f) => ({ type: "function", function: f })), tool_choice: choice } : { model: "gpt-4", messages, functions, function_call };
  console.log(JSON.stringify({ body: JSON.stringify(body, null, k % 2 ? 2 : 0), want }));
}
