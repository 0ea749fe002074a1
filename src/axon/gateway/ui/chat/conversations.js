// The list of conversations: page by page, newest first, searched by title. Opens none itself.

import { api } from "../common/api.js";
import { make } from "../common/dialog.js";

const PAGE = 50;
const TYPING_MS = 200;
const MOST_TITLE = 200;
const DAY_MS = 86_400_000;

/** The list in the side bar. `onOpen` is told the id of the conversation that somebody chose. */
export class ConversationList {
  #items = new Map();
  #last = "";
  #hasMore = false; // nothing is asked before somebody is signed in
  #loading = null;
  #search = "";
  #current = "";

  constructor(onOpen) {
    this.list = document.getElementById("list");
    this.note = document.getElementById("list-note");
    this.onOpen = onOpen;
    const end = document.getElementById("list-end");
    const root = document.getElementById("list-scroll");
    this.end = new IntersectionObserver((entries) => entries.some((each) => each.isIntersecting) && this.more(), { root, rootMargin: "600px" });
    this.end.observe(end);
    let timer = 0;
    document.getElementById("search").addEventListener("input", (event) => {
      clearTimeout(timer);
      timer = setTimeout(() => this.searchFor(event.target.value.trim()), TYPING_MS);
    });
    this.list.addEventListener("keydown", (event) => this.#move(event));
  }

  /** Shows the list from its beginning. */
  async reload() {
    this.#last = "";
    this.#hasMore = true;
    this.#loading = null;
    this.#items.clear();
    this.list.replaceChildren();
    await this.more();
  }

  searchFor(words) {
    this.#search = words;
    return this.reload();
  }

  /** Loads the next page, once at a time. */
  more() {
    if (!this.#hasMore) return Promise.resolve();
    this.#loading ??= this.#load().finally(() => (this.#loading = null));
    return this.#loading;
  }

  async #load() {
    const query = new URLSearchParams({ limit: PAGE });
    if (this.#last) query.set("after", this.#last);
    if (this.#search) query.set("title", this.#search);
    const search = this.#search;
    try {
      const page = await api("GET", `v1/conversations?${query}`);
      if (search !== this.#search) return;
      this.#hasMore = page.has_more;
      this.#last = page.last_id || this.#last;
      this.list.append(...page.data.map((each) => this.#item(each)));
      this.note.textContent = this.#items.size ? "" : this.#search ? `No title contains “${this.#search}”.` : "Your conversations will be listed here.";
      // An observer reports changes alone: look again whether the end is still in sight.
      const end = document.getElementById("list-end");
      this.end.unobserve(end);
      this.end.observe(end);
    } catch (error) {
      this.#hasMore = false;
      this.note.replaceChildren(`The list could not be read: ${error.message} `);
      const again = make("button", { class: "plain small", type: "button" }, "Try again");
      again.addEventListener("click", () => this.reload());
      this.note.append(again);
    }
  }

  #item(conversation) {
    const link = make("a", { href: `?c=${conversation.id}` });
    link.append(make("span", { class: "item-title" }, titleOf(conversation)), make("span", { class: "hint" }, dayOf(conversation.created_at)));
    link.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      this.onOpen(conversation.id);
    });
    const item = make("li", {}, link);
    item.dataset.id = conversation.id;
    this.#items.get(conversation.id)?.remove();
    this.#items.set(conversation.id, item);
    if (conversation.id === this.#current) link.setAttribute("aria-current", "page");
    return item;
  }

  /** Puts a new conversation on top, or changes the title of one that is there. */
  put(conversation) {
    const there = this.#items.get(conversation.id);
    const isFound = titleOf(conversation).toLowerCase().includes(this.#search.toLowerCase());
    if (there) there.querySelector(".item-title").textContent = titleOf(conversation);
    else if (isFound) this.list.prepend(this.#item(conversation));
    if (this.#items.size) this.note.textContent = "";
  }

  remove(id) {
    this.#items.get(id)?.remove();
    this.#items.delete(id);
    if (!this.#items.size) this.note.textContent = "Your conversations will be listed here.";
  }

  /** Marks the conversation that is shown; none for an empty id. */
  mark(id) {
    this.#items.get(this.#current)?.querySelector("a").removeAttribute("aria-current");
    this.#current = id;
    this.#items.get(id)?.querySelector("a").setAttribute("aria-current", "page");
  }

  /** Returns the id of the conversation above or below the one that is shown. */
  beside(step) {
    const ids = [...this.list.children].map((item) => item.dataset.id);
    return ids[Math.max(0, ids.indexOf(this.#current) + step)] || "";
  }

  #move(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const links = [...this.list.querySelectorAll("a")];
    links[Math.min(links.length - 1, Math.max(0, links.indexOf(document.activeElement) + step))]?.focus();
  }
}

export const titleOf = (conversation) => conversation.metadata?.title || "Untitled";

/** Returns a title of at most 200 code units, cut between two characters. */
export function shortened(title) {
  let short = "";
  for (const each of title) {
    if (short.length + each.length > MOST_TITLE) break;
    short += each;
  }
  return short;
}

/** Returns the title that a conversation gets from its first question. */
export function titleFrom(text) {
  const line = text.trim().split("\n", 1)[0].replace(/\s+/g, " ");
  return [...line].length > 80 ? `${[...line].slice(0, 79).join("")}…` : line || "Untitled";
}

function dayOf(seconds) {
  const date = new Date(seconds * 1000);
  const today = new Date().setHours(0, 0, 0, 0);
  if (date >= today) return date.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  if (date >= today - DAY_MS) return "Yesterday";
  return date.toLocaleDateString([], { day: "numeric", month: "short", year: "numeric" });
}
