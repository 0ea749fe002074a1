// A dialogue that asks once: fields, what will happen, the command that does the same, and what went wrong. Knows no view.

import { api } from "../common/api.js";
import { make, shown, toast } from "../common/dialog.js";

let count = 0;

/**
 * Opens a dialogue. `fields` are {name, label, value?, type?, options?, hint?, required?, min?, max?}; `says(values)` is the
 * sentence of what will happen, `command(values)` the line that does the same, `run(values)` does it. Resolves to what
 * `run` returned, or null when it was left.
 */
export function ask({ title, fields = [], says, command, action, danger = false, run }) {
  return new Promise((resolve) => {
    const id = `action-${++count}`;
    const inputs = fields.map((field, index) => inputOf(field, `${id}-${index}`));
    const words = make("p", { class: "says" });
    const line = make("pre", { class: "command", tabIndex: 0, "aria-label": "The same on the command line" });
    const problem = make("p", { class: "notice bad", role: "alert", hidden: true });
    const go = make("button", { class: danger ? "danger" : "primary", type: "submit" }, action);
    const cancel = make("button", { type: "button" }, "Cancel");
    const form = make("form", { method: "dialog", "aria-labelledby": id, noValidate: false },
      make("h2", { id }, title),
      ...inputs.map((each) => each.element),
      words,
      make("div", {}, make("p", { class: "hint" }, "The same on the command line:"), line),
      problem,
      make("div", { class: "actions" }, cancel, go));
    const dialog = make("dialog", { "aria-labelledby": id }, form);
    let outcome = null;

    const values = () => Object.fromEntries(fields.map((field, index) => [field.name, inputs[index].value()]));
    const say = () => {
      const now = values();
      words.textContent = says(now);
      line.textContent = command(now);
    };
    form.addEventListener("input", say);
    cancel.addEventListener("click", () => dialog.close());
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      problem.hidden = true;
      go.disabled = true;
      try {
        outcome = { value: await run(values()) };
        dialog.close();
      } catch (error) {
        problem.textContent = error.message;
        problem.hidden = false;
      }
      go.disabled = false;
    });
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(outcome ? outcome.value ?? true : null);
    });
    say();
    document.body.append(dialog);
    dialog.showModal();
  });
}

function inputOf(field, id) {
  const { label, type = "text", options, hint, required = false } = field;
  if (type === "checks") return checksOf(field, id);
  const shared = { id, required, "aria-describedby": hint ? `${id}-hint` : "" };
  const input = options
    ? make("select", shared, ...options.map((each) => make("option", { value: each.value ?? each }, each.label ?? each)))
    : make("input", { ...shared, type, autocomplete: "off", spellcheck: false, ...bounds(field) });
  input.value = field.value ?? "";
  if (options && field.value === undefined) input.selectedIndex = 0;
  const element = make("div", { class: "field" }, make("label", { htmlFor: id }, label), input, hint ? make("p", { class: "hint", id: `${id}-hint` }, hint) : "");
  return { element, value: () => (type === "number" ? (input.value === "" ? null : Number(input.value)) : input.value.trim()) };
}

function bounds({ min, max, step, pattern, placeholder = "" }) {
  return Object.fromEntries(Object.entries({ min, max, step, pattern, placeholder }).filter(([, value]) => value !== undefined && value !== ""));
}

function checksOf({ label, options, value }, id) {
  const boxes = options.map((each) => make("input", { type: "checkbox", value: each.value, checked: value.includes(each.value) }));
  const lines = options.map((each, index) => make("label", { class: "check" }, boxes[index], make("span", {}, each.value, make("span", { class: "hint" }, ` ${each.hint}`))));
  const element = make("fieldset", { class: "field", id }, make("legend", {}, label), ...lines);
  return { element, value: () => boxes.filter((box) => box.checked).map((box) => box.value) };
}

/** Sends a change to the admin API and says that it was done. */
export async function change(method, path, body, done) {
  const answer = await api(method, path, body);
  if (done) toast(done);
  return answer;
}

/** Shows a key's text, this once, with a button that copies it. */
export function showOnce(title, text, hint) {
  const field = make("input", { type: "text", readOnly: true, value: text, class: "secret", "aria-label": "The new key" });
  field.addEventListener("focus", () => field.select());
  const copy = make("button", { type: "button" }, "Copy");
  copy.addEventListener("click", async () => {
    field.select();
    try {
      await navigator.clipboard.writeText(text);
      copy.textContent = "Copied";
    } catch {
      copy.textContent = "Copy it by hand";
    }
  });
  return shown({ title, body: [make("p", {}, hint), make("div", { class: "once" }, field, copy)], action: "I have kept it" });
}
