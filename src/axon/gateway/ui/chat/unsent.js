// What is typed in the field, until the server has it: kept as a draft of the chat that it belongs to, as the files beside it
// are while the page is there. Sends nothing.

import { draftOf, forgetAsked, forgetDrafts, keepAsked, keepDraft } from "./drafts.js";

const DRAFT_MS = 300;
const MOST_CHATS = 20; // with files
const RELOAD_MS = 5_000; // a reload that has begun by now leads to the address of before

/** Keeps what is in the `composer`, and brings it back; `here` returns the id of the conversation that it belongs to, empty
 * in a new chat. */
export class Unsent {
  #timer = 0;
  #begunTimer = 0;
  #files = new Map(); // what was attached and not sent, by the chat's id
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
    this.#onItsWay = this.composer.text.trim();
    this.composer.clear();
    this.typed();
  }

  /** This request is on its way. It is kept if it begins a chat, which has no address that a reload could lead to. */
  asked({ body, headers }) {
    clearTimeout(this.#begunTimer);
    if (typeof body.conversation === "object") keepAsked({ body, headers });
  }

  /** The request that was on its way when the page was left is so again: its question is no draft in the field any more. */
  askedAgain(request, text) {
    this.asked(request);
    this.#onItsWay = text;
    const now = this.composer.text;
    if (text && `${now}\n\n`.startsWith(`${text}\n\n`)) this.composer.text = now.slice(text.length + 2);
    this.typed();
  }

  /** The chat that was begun gets its address now. */
  begun() {
    this.#begunTimer = setTimeout(forgetAsked, RELOAD_MS);
    keepDraft("", "");
    this.keep();
  }

  /** The server has the question. */
  accepted() {
    this.#onItsWay = "";
    this.typed();
  }

  /** The server does not have the question, and will not: it is in the field again. */
  back({ text, files }) {
    this.#onItsWay = "";
    forgetAsked();
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
    forgetAsked();
    if (this.#isDirty) this.keep();
    if (this.composer.files.length) this.#files.set(this.here(), this.composer.files);
    if (this.#files.size > MOST_CHATS) this.#files.delete(this.#files.keys().next().value);
  }

  /** The page is left. */
  settle() {
    if (this.#isDirty) this.keep(true);
  }

  /** Shows what was typed before for the chat that is shown now; behind it what is in the field, if that comes along. */
  show(comesAlong = false) {
    const id = this.here();
    const draft = draftOf(id);
    const files = this.#files.get(id) || [];
    this.#files.delete(id);
    if (!this.isFirst && !comesAlong) Object.assign(this.composer, { text: draft, files });
    else if (draft || files.length) this.composer.restore(draft, files);
    this.isFirst = false;
    if (comesAlong) this.keep();
    else if (this.#isDirty) this.typed();
  }

  /** Keeps nothing of what is in the field now: its chat was erased. */
  forget() {
    clearTimeout(this.#timer);
    this.#isDirty = false;
  }

  /** Forgets what is kept for a chat that was erased. */
  erased(id) {
    keepDraft(id, "");
    this.#files.delete(id);
  }

  /** Somebody has signed out in another tab: forgets what is kept for every chat. */
  signedOut() {
    forgetDrafts();
    this.#files.clear();
    this.forget();
  }
}
