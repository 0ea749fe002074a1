// The choice of a model, with whether it can answer at once. Asks no model anything.

import { api } from "../common/api.js";
import { make, toast } from "../common/dialog.js";

const NAME = "axon.chat.model";
const LOOK_MS = 2_000;
const IDLE_LOOK_MS = 30_000; // a model that is ready may go cold
const WORDS = { ready: "ready", loading: "loading", cold: "cold: starts when asked", failed: "could not be loaded" };

/** The picker in the header. `onShown` is told the model, `onPicked` that somebody has picked another one. A model that is wanted
 * and not served stays chosen and cannot be asked: no other one answers in its place without a word. */
export class ModelPicker {
  #models = [];
  #wanted = "";
  #next = ""; // what a conversation goes on with, until the models are listed
  #timer = 0;
  #number = 0;
  #isKnown = true;
  #tellListed = null;

  constructor(onShown, onPicked) {
    this.onShown = onShown;
    this.isListed = false;
    /** Resolves when the server has listed its models for the first time. */
    this.listed = new Promise((resolve) => (this.#tellListed = resolve));
    this.select = document.getElementById("model");
    this.state = document.getElementById("model-state");
    this.select.addEventListener("change", () => {
      this.#wanted = this.select.value;
      remember(this.#wanted);
      onPicked();
      this.#fill();
      this.reload();
    });
    this.select.addEventListener("focus", () => this.reload());
  }

  /** The chosen model as the server lists it; undefined where there is none. */
  get chosen() {
    return this.#models.find((model) => model.id === this.select.value);
  }

  /** Asks the server for its models, and looks again: often while the chosen one is not ready. */
  async reload() {
    clearTimeout(this.#timer);
    const number = ++this.#number;
    try {
      const found = (await api("GET", "v1/models")).data;
      if (number !== this.#number) return; // somebody has asked again meanwhile
      this.#models = found.filter((model) => !model.capabilities || model.capabilities.includes("chat"));
      this.#fill();
      this.#isKnown = true;
      this.isListed = true;
      this.#tellListed();
    } catch (error) {
      if (number !== this.#number) return;
      this.lost(error.message);
    }
    if (number !== this.#number) return;
    const isReady = this.#isKnown && this.chosen?.state === "ready";
    this.#timer = setTimeout(() => this.#look(), isReady ? IDLE_LOOK_MS : LOOK_MS);
  }

  /** Nobody knows the models' state: the server does not say it. */
  lost(why = "The server cannot be reached.") {
    this.#isKnown = false;
    this.state.className = "state none";
    this.state.textContent = "unknown";
    this.state.title = why;
  }

  /** Lets no model be chosen, and says why. */
  forbid(why) {
    this.select.disabled = true;
    this.select.replaceChildren(make("option", {}, "No model"));
    this.state.className = "state none";
    this.state.textContent = why;
  }

  /** Looks again, unless nobody sees it: then when the page is shown. */
  #look() {
    if (!document.hidden) return this.reload();
    document.addEventListener("visibilitychange", () => this.reload(), { once: true });
  }

  /** Shows at once what an answer says of its model's state, and asks the server for the rest. */
  heard(name, state) {
    const model = this.#models.find((each) => each.id === name.split("@", 1)[0]);
    if (!model || model.state === state) return;
    model.state = state;
    this.#fill();
    this.reload();
  }

  /** Chooses the model that a conversation goes on with, even before the server has listed it. */
  choose(asked) {
    this.#next = asked.split("@", 1)[0]; // a version may be named behind it
    if (this.#models.length) this.#fill();
  }

  /** Takes over what a conversation was asked with last; an alias or a model of the past is not listed. */
  #take(served) {
    if (!this.#next || !this.#models.length) return;
    const before = this.#wanted;
    if (served(this.#next)) this.#wanted = this.#next;
    else this.#wanted = [before, recalled(), this.#models[0].id].find(served);
    if (this.#wanted !== this.#next) toast(`${this.#next}, which answered last here, is not listed. ${this.#wanted} will answer.`, "warn");
    this.#next = "";
  }

  /** Chooses a model that is served, for a chat that wants none in particular. */
  free() {
    this.#next = "";
    if (this.chosen || !this.#models.length) return;
    this.#wanted = "";
    this.#fill();
  }

  /** Why nothing can be asked, in words; empty if it can. */
  get problem() {
    if (this.chosen) return "";
    return this.#isGone(this.#wanted) ? `${this.#wanted} is not served any more. Choose another model.` : "No model can answer yet. Wait until one is listed, or ask whoever runs this server.";
  }

  #isGone(name) {
    return Boolean(name && this.#models.length) && !this.#models.some((model) => model.id === name);
  }

  #fill() {
    const served = (name) => this.#models.some((model) => model.id === name);
    this.#take(served);
    this.#wanted ||= [recalled(), this.#models[0]?.id || ""].find(served) || "";
    const options = this.#models.map((model) => [model.id, model.state === "ready" ? model.id : `${model.id} (${model.state})`]);
    if (this.#isGone(this.#wanted)) options.unshift([this.#wanted, `${this.#wanted} (not served)`]);
    if (!options.length) options.push(["", "No model"]);
    const isSame = options.length === this.select.options.length && options.every(([, name], index) => name === this.select.options[index].text);
    if (!isSame) this.select.replaceChildren(...options.map(([value, name]) => make("option", { value }, name))); // whoever has the list open is left in peace
    if (this.#models.length && this.select.value !== this.#wanted) this.select.value = this.#wanted;
    this.select.disabled = !this.#models.length;
    this.#show();
  }

  #show() {
    const model = this.chosen;
    this.state.className = `state ${model?.state || "none"}`;
    this.state.title = "";
    const none = this.#isGone(this.#wanted) ? "not served any more" : "No model can answer yet";
    this.state.textContent = model ? WORDS[model.state] || model.state : none;
    this.onShown(model);
    this.select.title = model ? `${model.id}, version ${model.version}, up to ${model.max_model_len} tokens` : "";
  }
}

function remember(name) {
  try {
    localStorage.setItem(NAME, name);
  } catch {
    // It holds until the page is closed.
  }
}

function recalled() {
  try {
    return localStorage.getItem(NAME) || "";
  } catch {
    return "";
  }
}
