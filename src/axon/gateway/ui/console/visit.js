// One visit of a view: its place in the page, its address, requests that end with it, and polling. Knows no view.

import { api, ApiError } from "../common/api.js";
import { make } from "../common/dialog.js";

const LONGEST_MS = 30_000;
const PAGE = 100;
const MOST = 2000;

/** Waits twice as long after each failure; at most half a minute. */
export function pauseMs(everyMs, failures) {
  return failures ? Math.min(LONGEST_MS, everyMs * 2 ** failures) : everyMs;
}

export class Visit {
  #ended = new AbortController();
  #polls = new Set();

  constructor({ room, parts, query, place }) {
    Object.assign(this, { room, parts, query, place });
    document.addEventListener("visibilitychange", () => this.#seen(), { signal: this.#ended.signal });
    say("", "");
  }

  get isLeft() {
    return this.#ended.signal.aborted;
  }

  get signal() {
    return this.#ended.signal;
  }

  leave() {
    this.#ended.abort();
    for (const poll of this.#polls) clearTimeout(poll.timer);
  }

  /** Fills the place: a heading, a hint and elements. */
  show(title, hint, ...children) {
    this.place.replaceChildren(
      make("h1", {}, title),
      hint ? make("p", { class: "hint lead" }, hint) : "",
      ...children,
    );
  }

  /** Reads JSON. Null where the server says 404 and `orNull` is set. */
  async get(path, { orNull = false } = {}) {
    try {
      return await api("GET", path, undefined, { signal: this.signal });
    } catch (error) {
      if (orNull && error instanceof ApiError && error.status === 404) return null;
      throw error;
    }
  }

  /** Reads all pages of a list, at most 2,000 things. */
  async all(path) {
    const found = [];
    for (let after = ""; found.length < MOST; ) {
      const mark = path.includes("?") ? "&" : "?";
      const page = await this.get(`${path}${mark}limit=${PAGE}${after && `&after=${encodeURIComponent(after)}`}`);
      found.push(...page.data);
      if (!page.has_more || !page.data.length) break;
      after = page.last_id;
    }
    return found;
  }

  /** The address of the view as it is now. */
  get address() {
    const text = this.query.toString();
    return `#/${[this.room, ...this.parts].map(encodeURIComponent).join("/")}${text && `?${text}`}`;
  }

  /** Changes the query in the address without a new visit. */
  setQuery(name, value) {
    if (value) this.query.set(name, value);
    else this.query.delete(name);
    history.replaceState(history.state, "", this.address);
  }

  /** Calls `look` now and then again and again, while the page is seen; the first failure is thrown. */
  async poll(look, everyMs) {
    const poll = { look, everyMs, failures: 0, timer: 0 };
    await look();
    this.#polls.add(poll);
    poll.again = () => this.#again(poll);
    this.#plan(poll);
    say("live", "Live");
    return poll.again;
  }

  async #again(poll) {
    clearTimeout(poll.timer);
    try {
      await poll.look();
      poll.failures = 0;
      if (!this.isLeft && !document.hidden) say("live", "Live");
    } catch (error) {
      if (this.isLeft) return;
      poll.failures += 1;
      const wait = Math.round(pauseMs(poll.everyMs, poll.failures) / 1000);
      say("cut", `${error.message} Trying again in ${wait} s.`);
    }
    this.#plan(poll);
  }

  #plan(poll) {
    if (this.isLeft || document.hidden) return;
    clearTimeout(poll.timer);
    poll.timer = setTimeout(() => this.#again(poll), pauseMs(poll.everyMs, poll.failures));
  }

  #seen() {
    for (const poll of this.#polls) {
      clearTimeout(poll.timer);
      if (!document.hidden) this.#again(poll);
    }
    if (document.hidden && this.#polls.size) say("paused", "Paused");
  }

  showError(error) {
    if (error.name === "AbortError") return;
    this.place.replaceChildren(
      make("h1", {}, "This could not be read"),
      make("p", { class: "notice bad", role: "alert" }, error.message),
      make("p", {}, make("button", { class: "primary", type: "button", onclick: () => dispatchEvent(new Event("hashchange")) }, "Try again")),
    );
  }
}

function say(kind, text) {
  const pulse = document.getElementById("pulse");
  if (pulse.dataset.kind === kind && kind !== "cut") return;
  pulse.dataset.kind = kind;
  pulse.textContent = text;
}
