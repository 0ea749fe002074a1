// The keys of the page. Knows no conversation.

import { make, shown } from "../common/dialog.js";

const isApple = /Mac|iP/.test(navigator.platform);
const KEYS = [
  ["Enter", "send the message"],
  ["Shift Enter", "begin a new line"],
  ["Escape", "stop the answer; close a panel"],
  ["↑ in an empty message", "edit the last question"],
  ["Ctrl K", "search titles"],
  ["Ctrl Shift O", "new chat"],
  ["Ctrl Shift S", "settings"],
  ["Alt ↑, Alt ↓", "the conversation above or below"],
  ["/", "to the message field"],
  ["?", "these keys"],
];

/** Listens for the keys. `acts` has search, fresh, settings, beside, compose and stop. */
export function listenForKeys(acts) {
  addEventListener("keydown", (event) => {
    if (event.defaultPrevented || document.querySelector("dialog[open]")) return;
    const act = actOf(event, acts);
    if (!act) return;
    event.preventDefault();
    act();
  });
}

function actOf(event, acts) {
  const control = isApple ? event.metaKey : event.ctrlKey;
  const key = event.key.toLowerCase();
  if (control && !event.shiftKey && key === "k") return acts.search;
  if (control && event.shiftKey && key === "o") return acts.fresh;
  if (control && event.shiftKey && key === "s") return acts.settings;
  if (event.altKey && (key === "arrowup" || key === "arrowdown")) return () => acts.beside(key === "arrowup" ? -1 : 1);
  if (key === "escape") return event.target.type === "search" && event.target.value ? null : acts.stop; // it clears a search
  if (control || event.altKey || isTyping(event.target)) return null;
  if (key === "/") return acts.compose;
  if (key === "?") return showKeys;
  return null;
}

function isTyping(target) {
  return target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);
}

/** Lists the keys. */
export function showKeys() {
  const rows = KEYS.map(([keys, words]) => make("tr", {}, make("th", { scope: "row" }, make("kbd", {}, isApple ? keys.replace("Ctrl", "⌘") : keys)), make("td", {}, words)));
  return shown({ title: "Keys", body: make("table", { class: "keys" }, make("tbody", {}, ...rows)) });
}
