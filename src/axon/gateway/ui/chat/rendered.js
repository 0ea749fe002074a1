// Finished text as the server renders it: Markdown, code with a copy button, tables, maths. Knows no answer.

import { api } from "../common/api.js";
import { make, toast } from "../common/dialog.js";

const MOST_KEPT = 200;
const kept = new Map();

/** Resolves to a fragment of the rendered text. Throws ApiError. */
export async function rendered(text) {
  let html = kept.get(text);
  if (html === undefined) {
    html = (await api("POST", "ui/render", { text })).html;
    kept.set(text, html);
    if (kept.size > MOST_KEPT) kept.delete(kept.keys().next().value);
  }
  return decorated(html);
}

/** The server has sanitised it; a parsed document runs no script either. */
function decorated(html) {
  const fragment = document.createDocumentFragment();
  fragment.append(...new DOMParser().parseFromString(html, "text/html").body.childNodes);
  for (const pre of fragment.querySelectorAll("pre.code")) {
    const place = document.createComment("");
    pre.replaceWith(place);
    place.replaceWith(codeBox(pre, pre.dataset.language || "text"));
  }
  for (const table of fragment.querySelectorAll("table")) {
    const box = make("div", { class: "table-box", tabIndex: 0, role: "group", "aria-label": "Table" });
    table.replaceWith(box);
    box.append(table);
  }
  return fragment;
}

/** Puts a block of code into a box with its language's name and a button that copies it. */
export function codeBox(pre, name) {
  const copy = make("button", { class: "plain small", type: "button", "aria-label": `Copy the ${name} code` }, "Copy");
  copy.addEventListener("click", () => copied(pre.textContent, copy));
  pre.tabIndex = 0;
  return make("div", { class: "code-box" }, make("div", { class: "code-head" }, make("span", {}, name), copy), pre);
}

/** Copies text and says so on the button. */
export async function copied(text, button) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    if (!copiedByHand(text)) return toast("The browser did not let this page copy. Select the text instead.", "warn");
  }
  const before = button.textContent;
  button.textContent = "Copied";
  setTimeout(() => (button.textContent = before), 1500);
}

/** Copies by a selection, for pages that are not served over https. */
function copiedByHand(text) {
  const area = make("textarea", { class: "visually-hidden", value: text });
  document.body.append(area);
  area.select();
  const isDone = document.execCommand("copy");
  area.remove();
  return isDone;
}
