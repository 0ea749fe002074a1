// A conversation as a file: Markdown of what is shown, or JSON of everything. Asks no server.

import { make, shown } from "../common/dialog.js";
import { askedWith, indented, saidIn } from "./items.js";

/** Offers both forms. `path` is what is shown, `all` every response with its branches. */
export function offerExport(conversation, title, path, all) {
  const name = title.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "").slice(0, 60) || "conversation";
  const markdown = make("button", { type: "button" }, "Markdown: what is shown");
  const json = make("button", { type: "button" }, "JSON: everything, with branches");
  markdown.addEventListener("click", () => saved(`${name}.md`, "text/markdown", markdownOf(title, path)));
  json.addEventListener("click", () => saved(`${name}.json`, "application/json", JSON.stringify({ ...conversation, responses: all }, null, 2)));
  return shown({ title: "Export", body: make("div", { class: "choices" }, markdown, json) });
}

/** Returns the turns as Markdown. */
export function markdownOf(title, turns) {
  const parts = [`# ${title}`];
  for (const turn of turns) {
    const asked = askedWith(turn.input);
    parts.push("## You", ...(asked.text ? [asked.text] : []));
    for (const file of asked.files) parts.push(`File: ${file.name}`, fenced(file.text));
    for (const result of asked.results) parts.push(`Result of ${result.call}:`, fenced(indented(result.output)));
    parts.push(`## ${turn.model}`);
    for (const item of turn.output || []) {
      if (item.type === "function_call") parts.push(`Calls ${item.name}:`, fenced(indented(item.arguments), "json"));
    }
    if (saidIn(turn.output)) parts.push(saidIn(turn.output));
    if (turn.status === "cancelled") parts.push("*Stopped.*");
  }
  return `${parts.join("\n\n")}\n`;
}

function fenced(text, language = "") {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map((run) => run[0].length));
  const fence = "`".repeat(longest + 1);
  return `${fence}${language}\n${text}\n${fence}`;
}

function saved(name, type, text) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const link = make("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
