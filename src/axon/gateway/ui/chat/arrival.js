// What is on its way to the page: a conversation that is being opened, and a question that waits for it. Reads and sends
// nothing itself.

import { make } from "../common/dialog.js";
import { questionOf } from "./items.js";

const OPENING = "The conversation is being opened. Your question goes out as soon as it is.";
const LISTING = "Your question goes out as soon as the server has listed its models.";

/** Knows which conversation comes, and shows what there is of it. `onRetry` is told the id of one that could not be read and shall come after all. */
export class Arrival {
  #question = null;
  #problem = "";

  constructor({ onRetry }) {
    this.onRetry = onRetry;
    this.id = ""; // of the conversation that comes; empty where the page shows what it should
    this.isReading = false; // else it could not be read
    this.waiting = null; // the question that waits, as an element
    this.#show("");
  }

  /** Whether this conversation is being read now. */
  isComing(id) {
    return this.isReading && this.id === id;
  }

  /** The conversation is being read, or `isQuiet`ly once more: then what is shown stays. */
  begin(id, isQuiet = false) {
    this.id = id;
    this.isReading = true;
    if (!isQuiet) this.#show("");
  }

  /** The conversation could not be read. */
  fail(problem) {
    this.isReading = false;
    if (problem !== this.#problem) this.#show(problem);
  }

  /** The conversation is there, or nobody wants it any more. */
  end() {
    this.id = "";
    this.isReading = false;
    this.#show("");
  }

  /** Shows a question that waits. */
  wait(question) {
    this.#question = question;
    const asked = make("div", { class: "asked" }, ...questionOf({ results: [], ...question }));
    const ask = make("div", { class: "question" }, make("h2", { class: "visually-hidden" }, "You"), asked);
    const state = make("p", { class: "turn-state", role: "status" }, this.id ? OPENING : LISTING);
    this.waiting = make("article", { class: "turn running" }, ask, make("div", { class: "answer" }, state));
  }

  /** Returns the question that waits, once; null if none does. */
  take() {
    const question = this.#question;
    this.#question = this.waiting = null;
    return question;
  }

  /** Makes the element in the place of turns: the conversation comes, or could not be read. */
  #show(problem) {
    this.#problem = problem;
    if (!problem) return (this.element = make("p", { class: "opening hint" }, "The conversation is being opened…"));
    const again = make("button", { class: "primary", type: "button" }, "Try again");
    again.addEventListener("click", () => this.onRetry(this.id));
    this.element = make("div", { class: "empty" }, make("h2", {}, "This conversation could not be read"), make("p", { role: "alert" }, problem), make("p", {}, again));
  }
}
