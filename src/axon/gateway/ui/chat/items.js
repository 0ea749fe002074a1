// The parts of a turn as elements: what was asked, reasoning, text, calls of tools and their results. Sends nothing.

import { make } from "../common/dialog.js";
import { codeBox } from "./rendered.js";

const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|[[\]{},:]|[^\s[\]{},:"]+/g;
const MOST_DEPTH = 100; // each level indents all that is in it
const FILE = /^File: ([^\n]{1,200})\n\n([\s\S]*)$/;

/** Returns one part of a message for an attached file. */
export const filePart = (name, text) => ({ type: "input_text", text: `File: ${name}\n\n${text}` });

/** Returns {text, files, results} of what a turn was asked with. */
export function askedWith(input) {
  const asked = { text: "", files: [], results: [] };
  for (const item of input || []) {
    if (item.type === "function_call_output") {
      asked.results.push({ call: item.call_id, output: textOf(item.output) });
      continue;
    }
    const parts = typeof item.content === "string" ? [{ text: item.content }] : item.content || [];
    for (const [index, part] of parts.entries()) {
      const file = index ? FILE.exec(part.text || "") : null;
      if (file) asked.files.push({ name: file[1], text: file[2] });
      else asked.text += (asked.text ? "\n" : "") + (part.text || "");
    }
  }
  return asked;
}

const textOf = (output) => (typeof output === "string" ? output : (output || []).map((part) => part.text || "").join(""));

/** Returns the elements of a question. */
export function questionOf(asked, nameOf) {
  const parts = [];
  if (asked.text) parts.push(make("div", { class: "asked-text" }, asked.text));
  for (const file of asked.files) parts.push(folded("file", `📄 ${file.name}`, file.text));
  for (const result of asked.results) {
    parts.push(make("p", { class: "hint" }, `Result of ${nameOf(result.call)}`), pretty(result.output, "result"));
  }
  return parts;
}

/** Returns text behind a line that opens it. */
export function folded(kind, title, text) {
  return make("details", { class: kind }, make("summary", {}, title), make("pre", { tabIndex: 0 }, text));
}

/** Returns JSON on several lines in a box; other text as it is. */
export function pretty(text, name) {
  const pre = make("pre", { class: "code" }, make("code", {}, indented(text)));
  return codeBox(pre, name);
}

/** Returns JSON text with line breaks; other text, and what is nested too deep, as it is. No character of a number, a name or a
 * string changes, and none moves: read into values and written again, long numbers would be rounded. */
export function indented(text) {
  try {
    JSON.parse(text);
    return laidOut(text);
  } catch {
    return text;
  }
}

function laidOut(text) {
  let [made, before, depth] = ["", "", 0];
  for (const [token] of text.matchAll(TOKEN)) {
    const isFirst = before === "{" || before === "[";
    const closes = token === "}" || token === "]";
    if (closes) depth -= 1;
    if (closes ? !isFirst : isFirst || before === ",") made += `\n${"  ".repeat(depth)}`;
    if (token === "{" || token === "[") depth += 1;
    if (depth > MOST_DEPTH) return text;
    made += token === ":" ? ": " : token;
    before = token;
  }
  return made;
}

/** Returns the card of a call; `onResult` is there while the call waits for its result. */
export function callCard(item, onResult, before = "") {
  const card = make("section", { class: "call", "aria-label": `Call of ${item.name}` });
  card.append(make("p", { class: "call-name" }, "The model calls ", make("strong", {}, item.name)));
  card.append(pretty(item.arguments || "{}", "arguments"));
  if (onResult) card.append(resultForm(item, onResult, before));
  return card;
}

function resultForm(item, onResult, value) {
  const area = make("textarea", { rows: 2, value, placeholder: "What the tool returned, as text or JSON", required: true });
  const note = make("p", { class: "hint", role: "status" });
  const form = make(
    "form",
    { class: "result" },
    make("label", {}, `Result of ${item.name}`, area),
    make("button", { class: "primary", type: "submit" }, "Send result"),
    note,
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    onResult(item.call_id, area.value);
    if (form.isConnected) note.textContent = "Kept. It goes out once each call has its result.";
  });
  return form;
}

/** Returns the text of all messages of an output. */
export function saidIn(output) {
  const messages = (output || []).filter((item) => item.type === "message");
  return messages.map((item) => item.content.map((part) => part.text || "").join("")).join("\n\n");
}
