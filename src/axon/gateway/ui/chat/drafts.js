// What was typed and not sent, by conversation, and the question that begins a chat, until the chat has an address: in this tab
// alone, until somebody signs out. Knows no page.
//
// The browser's session storage keeps it, so that a reload or a session's end loses nothing. It is bounded, belongs to one
// tenant, and never has a key in it.

import { parsed } from "../common/exact.js";

const PREFIX = "axon.chat.draft.";
const ASKED = "axon.chat.asked";
const WHOSE = "axon.chat.whose";
const MOST_DRAFTS = 20;
const MOST_KEPT = 1_000_000; // characters in all, and of a question that begins a chat
const MOST_AGE_MS = 60_000;
const KEY = /axk_/;

/** Forgets what another tenant has typed in this tab. */
export function draftsOf(tenant) {
  tried(() => {
    if (sessionStorage.getItem(WHOSE) !== tenant) forgetDrafts();
    sessionStorage.setItem(WHOSE, tenant);
  });
}

/** Keeps the text of a conversation ("" is a new chat); the oldest ones give way. An empty text is forgotten. */
export function keepDraft(id, text) {
  tried(() => {
    sessionStorage.removeItem(PREFIX + id);
    if (!text.trim() || text.length > MOST_KEPT || KEY.test(text)) return;
    const kept = names().map((name) => [name, sessionStorage.getItem(name)]);
    kept.sort(([, one], [, other]) => timeOf(one) - timeOf(other));
    let size = text.length + kept.reduce((sum, [, each]) => sum + each.length, 0);
    while (kept.length && (kept.length >= MOST_DRAFTS || size > MOST_KEPT)) {
      const [name, each] = kept.shift();
      sessionStorage.removeItem(name);
      size -= each.length;
    }
    sessionStorage.setItem(PREFIX + id, `${Date.now()} ${text}`);
  });
}

/** Returns what was typed for a conversation; empty if nothing is kept. */
export function draftOf(id) {
  const found = tried(() => sessionStorage.getItem(PREFIX + id)) || "";
  return found.slice(found.indexOf(" ") + 1);
}

export function forgetDrafts() {
  forgetAsked();
  tried(() => names().forEach((name) => sessionStorage.removeItem(name)));
}

/**
 * Keeps {body, headers} of the question that begins a chat: after a reload the very same request, sent once more, leads to its
 * answer. One that does not fit is not kept.
 */
export function keepAsked(asked) {
  forgetAsked();
  tried(() => {
    const text = JSON.stringify({ ...asked, asked_ms: Date.now() });
    if (text.length <= MOST_KEPT && !KEY.test(text)) sessionStorage.setItem(ASKED, text);
  });
}

/** Returns {body, headers, isOld} of the question that began a chat, once; null if none is kept. */
export function takeAsked() {
  const found = tried(() => parsed(sessionStorage.getItem(ASKED)));
  forgetAsked();
  return found && { body: found.body, headers: found.headers, isOld: Date.now() - found.asked_ms > MOST_AGE_MS };
}

export function forgetAsked() {
  tried(() => sessionStorage.removeItem(ASKED));
}

const timeOf = (kept) => Number(kept.split(" ", 1)[0]);

function names() {
  return Object.keys(sessionStorage).filter((name) => name.startsWith(PREFIX));
}

function tried(act) {
  try {
    return act();
  } catch {
    return null; // the browser keeps nothing for this page
  }
}
