// What is typed in the field, until the server has it: kept as a draft of the chat that it belongs to. Sends nothing.

import { draftOf, keepDraft } from "./drafts.js";

const DRAFT_MS = 300;

/** Keeps what is in the `composer`, and brings it back; `here` returns the id of the conversation that it belongs to, empty
 * in a new chat. */
export class Unsent {
  #timer = 0;
  #isDirty = false; // something was typed that is not kept yet
  #onItsWay = ""; // the question that is on its way: the session may be over before the server has it

  constructor(composer, here) {
    this.composer = composer;
    this.here = here;
    this.isFirst = true; // until the page shows its first chat, to which all belongs that was typed before
    this.isSigningOut = false; // then nothing is kept any more
  }

  /** Keeps what is in the field, soon: whoever types is not held up. */
  typed() {
    this.#isDirty = true;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.keep(), DRAFT_MS);
  }

  /** The question in the field goes out, or waits to: the field is free for the next one. */
  sent() {
    this.#onItsWay = this.composer.text;
    this.composer.clear();
    this.typed();
  }

  /** The server has the question. */
  accepted() {
    this.#onItsWay = "";
    this.typed();
  }

  /** The server does not have the question, and will not: it is in the field again. */
  back({ text, files }) {
    this.#onItsWay = "";
    this.composer.restore(text, files);
    this.keep();
  }

  /** Keeps what is in the field through a reload and a session's end. Before the page shows its first chat, it does so when
   * it is left alone (`isLast`): behind what was kept before. */
  keep(isLast = false) {
    clearTimeout(this.#timer);
    if (this.isSigningOut || (this.isFirst && !isLast)) return;
    this.#isDirty = false;
    const id = this.here();
    keepDraft(id, [this.isFirst && draftOf(id), this.#onItsWay, this.composer.text].filter(Boolean).join("\n\n"));
  }

  /** Keeps what is in the field of the chat that is left. A question on its way is at the server soon. */
  leave() {
    this.#onItsWay = "";
    if (this.#isDirty) this.keep();
  }

  /** The page is left. */
  settle() {
    if (this.#isDirty) this.keep(true);
  }

  /** Shows what was typed before for the chat that is shown now; behind it what is in the field, if that comes along. */
  show(comesAlong = false) {
    const draft = draftOf(this.here());
    if (!this.isFirst && !comesAlong) this.composer.text = draft;
    else if (draft) this.composer.restore(draft);
    this.isFirst = false;
    if (comesAlong) this.keep();
    else if (this.#isDirty) this.typed();
  }

  /** Keeps nothing of what is in the field now: its chat was erased, or somebody has signed out. */
  forget() {
    clearTimeout(this.#timer);
    this.#isDirty = false;
  }
}
