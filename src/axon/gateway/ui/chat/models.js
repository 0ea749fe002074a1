// The choice of a model, with whether it can answer at once. Asks no model anything.

import { api } from "../common/api.js";
import { make } from "../common/dialog.js";

const NAME = "axon.chat.model";
const LOOK_MS = 5_000;
const WORDS = { ready: "ready", loading: "loading", cold: "cold: starts when asked", failed: "could not be loaded" };

/** The picker in the header. */
export class ModelPicker {
  #models = [];
  #timer = 0;

  constructor(onShown) {
    this.onShown = onShown;
    this.select = document.getElementById("model");
    this.state = document.getElementById("model-state");
    this.select.addEventListener("change", () => {
      remember(this.select.value);
      this.#show();
      this.reload();
    });
    this.select.addEventListener("focus", () => this.reload());
  }

  /** The chosen model as the server lists it; undefined where there is none. */
  get chosen() {
    return this.#models.find((model) => model.id === this.select.value);
  }

  /** Asks the server for its models. Looks again while the chosen one is not ready. */
  async reload() {
    clearTimeout(this.#timer);
    try {
      const found = (await api("GET", "v1/models")).data;
      this.#models = found.filter((model) => !model.capabilities || model.capabilities.includes("chat"));
      this.#fill();
    } catch (error) {
      this.state.textContent = "";
      this.state.title = error.message;
    }
    if (!this.chosen || this.chosen.state !== "ready") this.#timer = setTimeout(() => this.reload(), LOOK_MS);
  }

  /** Chooses a model by its name, if the server has it. */
  choose(asked) {
    const name = asked.split("@", 1)[0]; // a version may be named behind it
    if (!this.#models.some((model) => model.id === name)) return;
    this.select.value = name;
    this.#show();
  }

  #fill() {
    const wanted = this.select.value || recalled();
    this.select.replaceChildren(
      ...this.#models.map((model) => make("option", { value: model.id }, model.state === "ready" ? model.id : `${model.id} (${model.state})`)),
    );
    if (this.#models.some((model) => model.id === wanted)) this.select.value = wanted;
    this.select.disabled = !this.#models.length;
    if (!this.#models.length) this.select.append(make("option", {}, "No model"));
    this.#show();
  }

  #show() {
    const model = this.chosen;
    this.state.className = `state ${model?.state || "none"}`;
    this.state.textContent = model ? WORDS[model.state] || model.state : "No model can answer yet";
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
