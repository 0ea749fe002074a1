// The API as the pages use it: who is signed in, requests, server-sent events. Knows no page.
//
// All paths are relative to the page, so that the server may be shown under any path. The key is never here: the browser
// keeps a cookie that scripts cannot read, and the session's token goes with each request that changes something.

import { parsed } from "./exact.js";

const SAFE = new Set(["GET", "HEAD"]);
const OURS = "axon."; // what this tab keeps until somebody signs out
const PLACE = "axon.place";
const MOST_PLACE = 500;
let known = null;
let isSigningOut = false;
let isLeft = false; // for the form: of all that would open it, one does
let who = null; // what `known` resolved to, so that a request need not wait for it

/** An answer that is no success. Status 0 means that the server was not reached. */
export class ApiError extends Error {
  constructor(status, code, message, retryAfterMs = null, param = "") {
    super(message);
    this.name = "ApiError";
    this.status = status;
    this.code = code;
    this.retryAfterMs = retryAfterMs;
    this.param = param;
  }
}

/** Resolves to {tenant, key, scopes, csrf, version, prefix, cli}; only administrators have a `cli`. Whoever is not signed in is sent to the form. */
export function session() {
  known ??= begin().then(
    (found) => (who = found),
    (error) => {
      known = null;
      throw error;
    },
  );
  return known;
}

/** Signs in with {key} or {code}; resolves to the session. */
export async function signIn(proof) {
  const response = await reached("ui/sign-in", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(proof),
  });
  if (!response.ok) throw await errorOf(response);
  const found = await response.json();
  known = Promise.resolve(found);
  who = found;
  return found;
}

/** Ends the session and opens the form, which leads back to this page. */
export async function signOut() {
  isSigningOut = true;
  try {
    await api("POST", "ui/sign-out");
  } catch (error) {
    isSigningOut = false;
    throw error;
  }
  known = who = null;
  kept((storage) => Object.keys(storage).forEach((name) => name.startsWith(OURS) && storage.removeItem(name)));
  toSignIn();
}

/** Returns where on this page somebody was when the session ended, as "?…#…", once; empty if nowhere. */
export function takePlace() {
  const [page, place] = (kept((storage) => storage.getItem(PLACE)) || " ").split(" ");
  kept((storage) => storage.removeItem(PLACE));
  return page === pageName() ? place : "";
}

/** Returns the one-time code in the address and removes it from there; null if there is none. */
export function takeCode() {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (code !== null) history.replaceState(history.state, "", location.pathname + location.search);
  return code;
}

/** Sends a request; resolves to the parsed JSON, or the text of another type. Throws ApiError. */
export async function api(method, path, body, { signal, headers = {} } = {}) {
  const response = await send(method, path, body, { signal, headers });
  if (response.status === 204) return null;
  const isJson = (response.headers.get("content-type") || "").includes("json");
  const text = await response.text();
  return isJson ? parsed(text) : text;
}

/** Reads a stream of server-sent events; yields {id, event, data}, data being text. Throws ApiError. */
export async function* events(path, { method, body, signal, headers = {} } = {}) {
  const verb = method || (body === undefined ? "GET" : "POST");
  const response = await send(verb, path, body, { signal, headers: { accept: "text/event-stream", ...headers } });
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  const parser = new EventParser();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield* parser.feed(decoder.decode(value, { stream: true }));
    }
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "network", "The connection to the server was lost.");
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** Parses server-sent events out of pieces of text. */
export class EventParser {
  #rest = "";
  #data = [];
  #event = "message";
  #id = "";

  *feed(text) {
    const lines = (this.#rest + text).split(/\r\n|\n|\r(?!$)/);
    this.#rest = lines.pop();
    for (const line of lines) {
      if (line === "") {
        if (this.#data.length) yield { id: this.#id, event: this.#event, data: this.#data.join("\n") };
        this.#data = [];
        this.#event = "message";
      } else this.#field(line);
    }
  }

  #field(line) {
    const colon = line.indexOf(":");
    if (colon === 0) return;
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "data") this.#data.push(value);
    else if (name === "event") this.#event = value;
    else if (name === "id") this.#id = value;
  }
}

// A link that is followed in a tab that shows this page already changes the address and nothing else.
addEventListener("hashchange", () => {
  const code = takeCode();
  if (code) signIn({ code }).catch(() => {}); // whoever is signed in goes on, whatever the link is worth
});

async function begin() {
  const code = takeCode();
  if (code) {
    try {
      return await signIn({ code });
    } catch (error) {
      if (error.status !== 401) throw error;
      // The browser may be signed in already, and the link an old one.
    }
  }
  const response = await reached("ui/session", {});
  if (response.status === 401) return toSignIn(code ? "code" : "");
  if (!response.ok) throw await errorOf(response);
  return response.json();
}

async function send(method, path, body, { signal, headers }, isAgain = false) {
  const asked = { method, signal, headers: { ...headers } };
  if (!SAFE.has(method)) asked.headers["x-axon-csrf"] = (who ?? (await session())).csrf;
  if (body instanceof FormData) asked.body = body;
  else if (body !== undefined) {
    asked.body = JSON.stringify(body);
    asked.headers["content-type"] = "application/json";
  }
  const response = await reached(path.replace(/^\/+/, ""), asked);
  if (response.ok) return response;
  const error = await errorOf(response);
  if (error.code === "csrf" && !isAgain) {
    known = who = null; // somebody signed in again in another tab, which made a new token
    return send(method, path, body, { signal, headers }, true);
  }
  if (error.status === 401) return toSignIn("ended");
  throw error;
}

async function reached(path, asked) {
  try {
    return await fetch(path, { credentials: "same-origin", cache: "no-store", redirect: "error", ...asked });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "network", "The server cannot be reached.");
  }
}

async function errorOf(response) {
  const wait = Number(response.headers.get("retry-after-ms"));
  const said = await response.json().catch(() => ({}));
  const error = typeof said.error === "string" ? { message: said.error } : said.error || {};
  const message = error.message || `The server answered with ${response.status}.`;
  return new ApiError(response.status, error.code || error.type || "", message, wait || null, error.param || "");
}

/** Opens the form and never resolves, because the page is left. */
function toSignIn(why = "") {
  if (!isLeft) {
    isLeft = true;
    const place = location.search + location.hash;
    if (!isSigningOut && place.length <= MOST_PLACE) kept((storage) => storage.setItem(PLACE, `${pageName()} ${place}`));
    if (isSigningOut) location.assign(formFor(""));
    else location.replace(formFor(why));
  }
  return new Promise(() => {});
}

/** The form's address. It is told this page's name, and itself knows to which names it may lead. A view of the console is
 * kept behind the #, which no server sees. */
function formFor(why) {
  const page = pageName();
  const query = new URLSearchParams();
  if (page) query.set("to", page);
  if (why) query.set("why", why);
  return `sign-in${query.size ? `?${query}` : ""}${location.hash.startsWith("#/") ? location.hash : ""}`;
}

const pageName = () => location.pathname.split("/").pop();

function kept(act) {
  try {
    return act(sessionStorage);
  } catch {
    return null; // the browser keeps nothing for this page
  }
}
