// The line that says how the connection is. Connects nothing.

const WORDS = {
  lost: "Connection lost. The answer goes on at the server; reconnecting…",
  unsent: "The server cannot be reached. Your message is kept here and sent as soon as it can be; trying again…",
  back: "Connected again. Nothing was lost.",
};
const BACK_MS = 4_000;

/** Shows the line; `onLost` and `onBack` are told when the server cannot be reached, and when it can again. */
export class ConnectionLine {
  #timer = 0;
  #wasLost = false;

  constructor({ onLost, onBack }) {
    this.onLost = onLost;
    this.onBack = onBack;
    this.element = document.getElementById("connection");
  }

  /** Shows a state: "lost", "unsent" (with `why` in the server's words), "back", or null where nothing is connected. */
  show(state, why = "") {
    if (state === "lost" || state === "unsent") this.onLost();
    else if (state === "back" && this.#wasLost) this.onBack();
    clearTimeout(this.#timer);
    if (state === null || (state === "back" && !this.#wasLost)) {
      this.#wasLost = false;
      this.element.hidden = true;
      return;
    }
    this.#wasLost = state !== "back";
    this.element.hidden = false;
    this.element.className = `line ${state === "back" ? "good" : "warn"}`;
    this.element.textContent = state === "unsent" && why ? `${why} Your message is kept here; trying again…` : WORDS[state];
    if (state === "back") this.#timer = setTimeout(() => (this.element.hidden = true), BACK_MS);
  }
}
