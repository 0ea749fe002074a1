// A dialogue that asks once: fields, what will happen, the command that does the same, and what went wrong. While it does
// what was asked it stays, so that nothing it learns is lost: a new key is told once. Knows no view.

import { api } from "../common/api.js";
import { make, shown, toast } from "../common/dialog.js";
import { needs } from "./commands.js";

let count = 0;

/**
 * Opens a dialogue. `fields` are {name, label, value?, type?, options?, hint?, required?, min?, max?, pattern?, wrong?, param?};
 * `says(values)` is the sentence of what will happen, `command(values)` the line that does the same, `run(values)` does it.
 * What is wrong with a field is said at the field: by the field itself (`wrong` is what to do where it has another form than
 * `pattern`), or by the server, whose errors name it (`param`, if that is not its name). Resolves to what `run` returned, or
 * null when it was left, or when another dialogue is open already, as after a double click.
 */
export function ask({ title, fields = [], says, command, action, danger = false, run }) {
  if (document.querySelector("dialog[open]")) return Promise.resolve(null);
  return new Promise((resolve) => {
    const id = `action-${++count}`;
    const inputs = fields.map((field, index) => inputOf(field, `${id}-${index}`));
    const words = make("p", { class: "says" });
    const line = make("pre", { class: "command", tabIndex: 0, "aria-label": "The same on the command line" });
    const condition = make("p", { class: "hint" });
    const problem = make("p", { class: "notice bad", role: "alert", hidden: true });
    const go = make("button", { class: danger ? "danger" : "primary", type: "submit" }, action);
    const cancel = make("button", { type: "button" }, "Cancel");
    const form = make("form", { method: "dialog", "aria-labelledby": id, noValidate: true },
      make("h2", { id }, title),
      ...inputs.map((each) => each.element),
      words,
      make("div", {}, make("p", { class: "hint" }, "The same on the command line:"), line, condition),
      problem,
      make("div", { class: "actions" }, cancel, go));
    const dialog = make("dialog", { "aria-labelledby": id }, form);
    let outcome = null;
    const busy = busyWith(dialog, [go, cancel]);

    const values = () => Object.fromEntries(fields.map((field, index) => [field.name, inputs[index].value()]));
    const say = () => {
      const now = values();
      words.textContent = says(now);
      line.textContent = command(now);
      condition.textContent = needs(line.textContent);
    };
    form.addEventListener("input", say);
    cancel.addEventListener("click", () => dialog.close());
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      problem.hidden = true;
      const wrong = inputs.filter((each) => each.check());
      if (wrong.length) return wrong[0].focus();
      busy.begin();
      try {
        outcome = { value: await run(values()) };
        busy.end();
        return dialog.close();
      } catch (error) {
        busy.end();
        const index = fields.findIndex((field) => [field.name, field.param].flat().some((name) => isAbout(error.param, name)));
        if (index >= 0) inputs[index].say(error.message);
        else {
          problem.textContent = error.message;
          problem.hidden = false;
        }
      }
    });
    dialog.addEventListener("close", () => {
      if (busy.is()) return dialog.showModal(); // some browsers let a second Escape or a gesture close it all the same
      dialog.remove();
      resolve(outcome ? outcome.value ?? true : null);
    });
    say();
    document.body.append(dialog);
    dialog.showModal();
  });
}

/** Keeps a dialogue open while something is done; its buttons wait. */
function busyWith(dialog, buttons) {
  let isBusy = false;
  const stay = (event) => event.preventDefault();
  const stayAtEscape = (event) => event.key === "Escape" && event.preventDefault();
  const set = (now) => {
    isBusy = now;
    for (const each of buttons) each.disabled = now;
    dialog.ariaBusy = String(now);
    const listen = now ? "addEventListener" : "removeEventListener";
    dialog[listen]("cancel", stay);
    dialog[listen]("keydown", stayAtEscape);
  };
  return { begin: () => set(true), end: () => set(false), is: () => isBusy };
}

/** Whether an error's field, such as limits.weight, is or is in this one. */
export function isAbout(param, name) {
  return Boolean(param && name) && (param === name || param.startsWith(`${name}.`) || param.startsWith(`${name}[`));
}

/** What is wrong with an input as it is, and what to do; empty if nothing is. */
function wrongWith(input, { min, max, wrong = "" }) {
  const { validity } = input;
  if (validity.valid) return "";
  if (validity.valueMissing) return input.tagName === "SELECT" ? "There is nothing to choose from yet." : "Fill this in.";
  if (validity.patternMismatch) return wrong || `“${input.value}” does not have the form that is asked for here.`;
  if (validity.rangeUnderflow) return `Write ${min} or more.`;
  if (validity.rangeOverflow) return `Write ${max} or less.`;
  return "Write a number.";
}

/** The place below a field where its error is said. */
function errorPlace(id, input) {
  const place = make("p", { class: "wrong", id: `${id}-wrong`, role: "alert", hidden: true });
  const say = (text) => {
    place.textContent = text;
    place.hidden = !text;
    if (text) input.setAttribute("aria-invalid", "true");
    else input.removeAttribute("aria-invalid");
    if (text) input.focus();
  };
  return { place, say };
}

function inputOf(field, id) {
  const { label, type = "text", options, hint, required = false } = field;
  if (type === "checks") return checksOf(field, id);
  const shared = { id, required, "aria-describedby": hint ? `${id}-hint ${id}-wrong` : `${id}-wrong` };
  const input = options
    ? make("select", shared, ...options.map((each) => make("option", { value: each.value ?? each }, each.label ?? each)))
    : make("input", { ...shared, type, autocomplete: "off", spellcheck: false, ...bounds(field) });
  input.value = field.value ?? "";
  if (options && field.value === undefined) input.selectedIndex = 0;
  const { place, say } = errorPlace(id, input);
  input.addEventListener("input", () => say(""));
  const check = () => {
    const wrong = wrongWith(input, field);
    say(wrong);
    return wrong;
  };
  const element = make("div", { class: "field" }, make("label", { htmlFor: id }, label), input, place, hint ? make("p", { class: "hint", id: `${id}-hint` }, hint) : "");
  return { element, check, say, focus: () => input.focus(), value: () => (type === "number" ? (input.value === "" ? null : Number(input.value)) : input.value.trim()) };
}

function bounds({ min, max, step, pattern, placeholder = "" }) {
  return Object.fromEntries(Object.entries({ min, max, step, pattern, placeholder }).filter(([, value]) => value !== undefined && value !== ""));
}

function checksOf({ label, options, value }, id) {
  const boxes = options.map((each) => make("input", { type: "checkbox", value: each.value, checked: value.includes(each.value) }));
  const lines = options.map((each, index) => make("label", { class: "check" }, boxes[index], make("span", {}, each.value, make("span", { class: "hint" }, ` ${each.hint}`))));
  const { place, say } = errorPlace(id, boxes[0]);
  const check = () => {
    const wrong = boxes.some((box) => box.checked) ? "" : "Choose at least one.";
    say(wrong);
    return wrong;
  };
  for (const box of boxes) box.setAttribute("aria-describedby", place.id);
  const element = make("fieldset", { class: "field", id }, make("legend", {}, label), ...lines, place);
  element.addEventListener("input", () => say(""));
  return { element, check, say, focus: () => boxes[0].focus(), value: () => boxes.filter((box) => box.checked).map((box) => box.value) };
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
  return shown({ title, body: [make("p", {}, hint), make("div", { class: "once" }, field, copy)], action: "I have kept it", stays: true });
}
