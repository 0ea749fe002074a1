// The settings of the next answers: system text, sampling, a JSON schema, tools, a version. Sends nothing.

import { make } from "../common/dialog.js";
import { parsed } from "../common/exact.js";
import { indented } from "./items.js";

const NUMBERS = [
  ["temperature", "Temperature", "0 to 2; more is more varied", { min: 0, max: 2, step: "any" }],
  ["top_p", "Top p", "0 to 1; leaves out unlikely words", { min: 0, max: 1, step: "any" }],
  ["max_output_tokens", "Longest answer", "in tokens", { min: 1, step: 1 }],
  ["seed", "Seed", "the same seed gives the same answer", { step: 1 }],
];
const EFFORTS = ["", "none", "minimal", "low", "medium", "high"];

/** The panel at the right. Empty fields mean the model's own defaults. */
export class Settings {
  #fields = new Map();
  #checks = new Map();

  constructor() {
    this.panel = document.getElementById("settings");
    this.button = document.getElementById("settings-open");
    this.#build();
    this.button.addEventListener("click", () => this.toggle());
    this.panel.addEventListener("keydown", (event) => {
      if (event.key === "Escape") {
        event.stopPropagation();
        this.toggle(false);
      }
    });
  }

  toggle(isOpen = this.panel.hidden) {
    this.panel.hidden = !isOpen;
    this.button.setAttribute("aria-expanded", String(isOpen));
    if (isOpen) this.panel.querySelector("textarea").focus();
    else this.button.focus();
  }

  #build() {
    const close = make("button", { class: "plain icon", type: "button", "aria-label": "Close the settings" }, "×");
    close.addEventListener("click", () => this.toggle(false));
    this.panel.append(make("div", { class: "panel-head" }, make("h2", {}, "Settings"), close));
    this.panel.append(make("p", { class: "hint" }, "They hold from the next answer on. Empty fields leave it to the model."));
    this.#field("instructions", "System text", "what the model should know or be", make("textarea", { rows: 4 }));
    for (const [name, title, hint, range] of NUMBERS) {
      const input = make("input", { type: "number", inputMode: "decimal", ...range });
      const note = this.#field(name, title, hint, input);
      this.#checked(name, input, note, hint, () => (input.validity.valid ? "" : `${title}: ${input.validationMessage}`));
    }
    const effort = make("select", {}, ...EFFORTS.map((word) => make("option", { value: word }, word || "as the model does")));
    this.#field("effort", "Reasoning", "how much a reasoning model thinks", effort);
    this.#json("schema", "JSON schema", "the answer must be JSON of this form", '{"type": "object", "properties": {…}}');
    this.#json("tools", "Tools", "functions that the model may call; you give their results", '[{"type": "function", "name": "weather", "parameters": {…}}]');
    this.#field("version", "Version", "one version of the model; your key needs the scope versions", make("input", { type: "text", spellcheck: false }));
    const clear = make("button", { type: "button" }, "Clear all");
    clear.addEventListener("click", () => this.set({}));
    this.panel.append(clear);
  }

  /** Leaves the version to the server: that of one model is none of another's. */
  forgetVersion() {
    this.#fields.get("version").value = "";
  }

  /** Names the version that answers without a choice. */
  set version(label) {
    this.#fields.get("version").placeholder = label;
  }

  #field(name, title, hint, input) {
    const note = make("span", { class: "hint", id: `setting-${name}-hint` }, hint);
    input.id = `setting-${name}`;
    input.setAttribute("aria-describedby", note.id);
    this.panel.append(make("div", { class: "setting" }, make("label", { htmlFor: input.id }, title), input, note));
    this.#fields.set(name, input);
    return note;
  }

  #json(name, title, hint, example) {
    const area = make("textarea", { rows: 4, class: "mono", spellcheck: false, placeholder: example });
    const note = this.#field(name, title, hint, area);
    this.#checked(name, area, note, hint, () => jsonProblem(area.value));
    area.addEventListener("blur", () => {
      if (area.value.trim() && !jsonProblem(area.value)) area.value = indented(area.value);
    });
  }

  /** Says at the field itself what is wrong with it, whenever it changes. */
  #checked(name, input, note, hint, problemOf) {
    const check = () => {
      const problem = problemOf();
      input.setAttribute("aria-invalid", String(Boolean(problem)));
      note.textContent = problem || hint;
      note.classList.toggle("bad", Boolean(problem));
      return problem;
    };
    input.addEventListener("input", check);
    this.#checks.set(name, check);
  }

  /** Looks at every field, and marks those that are wrong; returns their names. */
  #wrong() {
    return [...this.#checks].filter(([, check]) => check()).map(([name]) => name);
  }

  /** What is wrong with the settings, in words; empty if nothing is. */
  get problem() {
    const titles = { ...Object.fromEntries(NUMBERS), schema: "JSON schema", tools: "Tools" };
    const names = this.#wrong().map((name) => titles[name]);
    return names.length ? `Settings: ${names.join(" and ")} cannot be sent as ${names.length > 1 ? "they are" : "it is"}.` : "";
  }

  /** Opens the panel at the first field that is wrong. */
  show() {
    this.toggle(true);
    const [name] = this.#wrong();
    if (name) this.#fields.get(name).focus();
  }

  #value(name) {
    return this.#fields.get(name).value.trim();
  }

  /** Returns the fields of a request that the settings make. */
  request(model) {
    // A chat that outgrows the model's window goes on without its oldest messages.
    const asked = { model: this.#value("version") ? `${model}@${this.#value("version")}` : model, truncation: "auto" };
    if (this.#value("instructions")) asked.instructions = this.#value("instructions");
    for (const [name] of NUMBERS) if (this.#value(name)) asked[name] = Number(this.#value(name));
    if (this.#value("effort")) asked.reasoning = { effort: this.#value("effort") };
    if (this.#value("schema")) asked.text = { format: { type: "json_schema", name: "answer", schema: parsed(this.#value("schema")) } };
    if (this.#value("tools")) asked.tools = toolsOf(parsed(this.#value("tools")));
    return asked;
  }

  /** Returns the numbers and the version as text, to be kept with a response. */
  get kept() {
    const found = {};
    for (const name of [...NUMBERS.map(([each]) => each), "version"]) if (this.#value(name)) found[name] = this.#value(name);
    return JSON.stringify(found);
  }

  /** Shows the settings that a response was asked with; none for an empty object. */
  set(response) {
    let numbers = {};
    try {
      numbers = JSON.parse(response.metadata?.settings || "{}");
    } catch {
      // Somebody else's metadata.
    }
    for (const [name, field] of this.#fields) field.value = numbers[name] ?? "";
    this.#fields.get("instructions").value = response.instructions || "";
    this.#fields.get("effort").value = response.reasoning?.effort || "";
    const format = response.text?.format;
    this.#fields.get("schema").value = format?.schema ? JSON.stringify(format.schema, null, 2) : "";
    this.#fields.get("tools").value = response.tools?.length ? JSON.stringify(response.tools, null, 2) : "";
    this.#wrong();
  }
}

function jsonProblem(text) {
  if (!text.trim()) return "";
  try {
    JSON.parse(text);
    return "";
  } catch (error) {
    return `This is not JSON: ${error.message}.`;
  }
}

/** Takes one function or several, in the shape of a chat's tools too. */
function toolsOf(given) {
  return [given].flat().map((tool) => (tool.function ? { type: "function", ...tool.function } : { type: "function", ...tool }));
}
