// The field for a message, with text files beside it. Sends nothing itself.

import { make, toast } from "../common/dialog.js";

const MOST_FILES = 8;
const MOST_BYTES = 256 * 1024;

/** The form at the bottom. `onSend` is given {text, files}; `onType` is told before a key changes the text, `onTyped` after it. */
export class Composer {
  #files = [];

  constructor({ onSend, onStop, onEditLast, onType, onTyped }) {
    this.form = document.getElementById("composer");
    this.area = document.getElementById("message");
    this.send = document.getElementById("send");
    this.stop = document.getElementById("stop");
    this.list = document.getElementById("files");
    const input = document.getElementById("file");
    this.send.disabled = false; // before, the browser itself would send the form, and load the page anew
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      const text = this.area.value.trim();
      if (!this.stop.hidden || (!text && !this.#files.length)) return;
      onSend({ text, files: this.#files });
    });
    this.stop.addEventListener("click", onStop);
    for (const kind of ["keydown", "paste"]) this.area.addEventListener(kind, onType); // the browser changes the text after them
    this.area.addEventListener("input", () => {
      this.#fit();
      onTyped();
    });
    this.area.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        this.form.requestSubmit();
      } else if (event.key === "ArrowUp" && !this.area.value) {
        event.preventDefault();
        onEditLast();
      }
    });
    document.getElementById("attach").addEventListener("click", () => input.click());
    input.addEventListener("change", () => {
      this.attach([...input.files]);
      input.value = "";
    });
    addEventListener("dragover", (event) => event.preventDefault());
    addEventListener("drop", (event) => {
      event.preventDefault();
      this.attach([...(event.dataTransfer?.files || [])]);
    });
  }

  /** Lets nothing be typed or sent, and says why. */
  forbid(why) {
    this.area.placeholder = why;
    for (const each of [this.area, this.send, document.getElementById("attach")]) each.disabled = true;
  }

  /** Shows whether an answer runs: then it can be stopped, and nothing sent. */
  set busy(isBusy) {
    this.send.hidden = isBusy;
    this.stop.hidden = !isBusy;
  }

  get text() {
    return this.area.value;
  }

  /** Shows another text in the place of what is there. */
  set text(text) {
    if (text === this.area.value) return;
    this.area.value = text;
    if (text) this.#fit();
    else this.area.style.height = "";
  }

  get files() {
    return this.#files;
  }

  /** Shows other files in the place of those that are attached. */
  set files(files) {
    this.#files = files;
    this.#show();
  }

  /** Empties the field. Its height is the style sheet's again, because measuring it would lay the page out at once. */
  clear() {
    this.area.value = "";
    this.area.style.height = "";
    this.files = [];
  }

  /** Puts text back that was not sent, before what was typed meanwhile. */
  restore(text, files = []) {
    const typed = this.area.value;
    const isThere = !text || typed === text || typed.startsWith(`${text}\n\n`); // as a draft that has the question in it
    if (!isThere) this.area.value = typed.trim() ? `${text}\n\n${typed}` : text;
    this.files = [...files, ...this.#files.filter((each) => !files.includes(each))];
    this.#fit();
    this.area.focus();
  }

  focus() {
    this.area.focus();
  }

  /** Attaches files that are text and small enough, and says which are not. */
  async attach(files) {
    for (const file of files) {
      if (this.#files.length >= MOST_FILES) {
        toast(`At most ${MOST_FILES} files go with a message.`, "warn");
        break;
      }
      if (file.size > MOST_BYTES) {
        toast(`${file.name} has ${Math.round(file.size / 1024)} kB; at most ${MOST_BYTES / 1024} kB can be attached.`, "warn");
        continue;
      }
      const text = textOf(new Uint8Array(await file.arrayBuffer()));
      if (text === null) toast(`${file.name} is not text, so it cannot be attached.`, "warn");
      else this.#files.push({ name: file.name.replace(/[\n\r]/g, " ").slice(0, 200), text });
    }
    this.#show();
  }

  #show() {
    this.list.hidden = !this.#files.length;
    this.list.replaceChildren(
      ...this.#files.map((file, index) => {
        const drop = make("button", { class: "plain small", type: "button", "aria-label": `Remove ${file.name}` }, "×");
        drop.addEventListener("click", () => {
          this.files = this.#files.filter((_, each) => each !== index);
        });
        return make("li", {}, `${file.name} (${Math.max(1, Math.round(file.text.length / 1024))} kB)`, drop);
      }),
    );
  }

  #fit() {
    this.area.style.height = "auto";
    this.area.style.height = `${Math.min(this.area.scrollHeight + 2, innerHeight * 0.4)}px`;
  }
}

/** Returns bytes as text; null if they are none. */
function textOf(bytes) {
  if (bytes.includes(0)) return null;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return null;
  }
}
