// Finished text as the server renders it: Markdown, code with a copy button, tables, maths. Knows no answer.

import { api } from "../common/api.js";
import { make, toast } from "../common/dialog.js";

const MOST_KEPT = 4_000_000; // characters of texts and their HTML
const MOST_TRIES = 4;
const MOST_BLOCKS = 100;
const COSTLY = "Shown as plain text: too costly to format.";
const kept = new Map();
let numKept = 0;

/** Resolves to a fragment of the rendered text. Throws ApiError. */
export async function rendered(text) {
  let found = kept.get(text);
  if (found === undefined) {
    found = await asked(text);
    keep(text, found);
  }
  const fragment = parted(decorated(found.html));
  if (found.plain) fragment.prepend(make("p", { class: "hint" }, COSTLY));
  return fragment;
}

/** Keeps a rendered text for when it is shown again; the oldest ones give way. */
function keep(text, found) {
  if (kept.has(text)) return; // it was asked for twice at once
  kept.set(text, found);
  numKept += text.length + found.html.length;
  for (const [old, { html }] of kept) {
    if (numKept <= MOST_KEPT) return;
    kept.delete(old);
    numKept -= old.length + html.length;
  }
}

/** Asks the server, and again after a while where too many texts wait there. */
async function asked(text) {
  for (let tries = 1; ; tries++) {
    try {
      return await api("POST", "ui/render", { text });
    } catch (error) {
      if (tries === MOST_TRIES || !error.retryAfterMs) throw error;
      await new Promise((resolve) => setTimeout(resolve, error.retryAfterMs * tries));
    }
  }
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

/** Puts many blocks into parts that the browser skips while they are out of sight. It looks at each part in each frame,
 * so that each block on its own would be as slow to scroll as none. */
function parted(fragment) {
  const blocks = [...fragment.childNodes];
  if (blocks.length <= MOST_BLOCKS) return fragment;
  for (let first = 0; first < blocks.length; first += MOST_BLOCKS) {
    fragment.append(make("div", { class: "part" }, ...blocks.slice(first, first + MOST_BLOCKS)));
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
