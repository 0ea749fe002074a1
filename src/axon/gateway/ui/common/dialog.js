// Dialogues and short notices, made of the browser's own <dialog>: focus stays inside, Escape leaves, and so does the
// browser's way back, since the page behind it changes. Knows no page.

/** Makes an element: its properties, then its children, of which strings become text. */
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "class") element.className = value;
    else if (name in element && name !== "list" && name !== "form") element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/**
 * Asks once before something is done; resolves to true or false. `text` says what will happen, `command` is the line of
 * the command line that does the same, `word` must be typed first where it is given.
 */
export function confirmed({ title, text, command = "", action = "Go on", danger = false, word = "" }) {
  return opened(title, (finish) => {
    const go = make("button", { class: danger ? "danger" : "primary", type: "submit" }, action);
    const typed = word && make("input", { type: "text", autocomplete: "off", spellcheck: false });
    if (typed) {
      go.disabled = true;
      typed.addEventListener("input", () => (go.disabled = typed.value !== word));
    }
    return {
      body: [
        make("p", {}, text),
        command && make("div", {}, make("p", { class: "hint" }, "The same on the command line:"), make("pre", {}, command)),
        typed && make("label", {}, `Type ${word} to go on`, typed),
      ],
      actions: [make("button", { type: "button", onclick: () => finish(false) }, "Cancel"), go],
      submitted: () => finish(true),
      otherwise: false,
    };
  });
}

/** Asks for one line of text; resolves to it, or to null. */
export function asked({ title, label, value = "", action = "Save", required = true }) {
  return opened(title, (finish) => {
    const input = make("input", { type: "text", value, required, autocomplete: "off" });
    return {
      body: [make("label", {}, label, input)],
      actions: [
        make("button", { type: "button", onclick: () => finish(null) }, "Cancel"),
        make("button", { class: "primary", type: "submit" }, action),
      ],
      submitted: () => finish(input.value),
      otherwise: null,
    };
  });
}

/** Shows elements until they are closed; with `stays` only by its button, for what cannot be seen again. */
export function shown({ title, body, action = "Close", stays = false }) {
  return opened(title, (finish) => ({
    body: Array.isArray(body) ? body : [body],
    actions: [make("button", { class: "primary", type: "submit" }, action)],
    submitted: () => finish(true),
    otherwise: true,
    stays,
  }));
}

/** Says something for a few seconds; `kind` is "good", "warn" or "bad". What is bad stays until it is closed. */
export function toast(text, kind = "good") {
  let place = document.querySelector(".toasts");
  if (!place) {
    place = make("div", { class: "toasts", role: "status", "aria-live": "polite" });
    document.body.append(place);
  }
  const notice = make("div", { class: `notice ${kind}` }, text);
  if (kind === "bad") {
    const close = make("button", { class: "plain", type: "button", "aria-label": "Close this notice" }, "×");
    close.addEventListener("click", () => notice.remove());
    notice.append(close);
  } else setTimeout(() => notice.remove(), 6000);
  place.append(notice);
  return notice;
}

let count = 0;

function opened(title, fill) {
  return new Promise((resolve) => {
    const id = `dialog-title-${++count}`;
    const dialog = make("dialog", { "aria-labelledby": id });
    let outcome;
    const finish = (value) => {
      outcome = { value };
      dialog.close();
    };
    const { body, actions, submitted, otherwise, stays = false } = fill(finish);
    const form = make("form", { method: "dialog" }, make("h2", { id }, title), ...body.filter(Boolean));
    form.append(make("div", { class: "actions" }, ...actions));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      submitted();
    });
    dialog.append(form);
    const leave = () => stays || dialog.close();
    addEventListener("popstate", leave);
    if (stays) dialog.addEventListener("cancel", (event) => event.preventDefault());
    dialog.addEventListener("close", () => {
      if (stays && !outcome) return dialog.showModal();
      removeEventListener("popstate", leave);
      dialog.remove();
      resolve(outcome ? outcome.value : otherwise);
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}
