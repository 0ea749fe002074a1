// A question that was sent and is not shown yet, and what is done once it is. Sends nothing.

import { afterPaint } from "./paint.js";

const REVEAL_MS = 80;

/**
 * Holds back the display of a question until the first word of its answer, or for REVEAL_MS if that takes longer: a page that
 * changes nothing meanwhile paints the first word a frame earlier. `onReveal` is told when a question is shown without a word.
 */
export class Unseen {
  #question = null; // {show, then, timer}; `then` are the acts that wait for its paint
  #soon = new Set(); // what is done after the next paint

  constructor(onReveal) {
    this.onReveal = onReveal;
  }

  /** Whether there is such a question. */
  get isThere() {
    return this.#question !== null;
  }

  /** Holds a question back; `show` displays it. */
  hold(show) {
    this.#question = { show, then: [], timer: setTimeout(() => this.reveal(), REVEAL_MS) };
  }

  /** Shows the question, if there is one; `isWithWord` says that the first word of its answer is shown with it. */
  reveal(isWithWord = false) {
    const question = this.#question;
    if (!question) return;
    this.#question = null;
    clearTimeout(question.timer);
    question.show();
    if (!isWithWord) this.onReveal();
    for (const act of question.then) this.later(act);
  }

  /** Runs `act` when the question and what is shown with it are painted. */
  later(act) {
    if (this.#question) return this.#question.then.push(act);
    const now = afterPaint(() => {
      this.#soon.delete(now);
      act();
    });
    this.#soon.add(now);
  }

  /** Shows the question and runs at once what waits for a paint: the page is left. */
  settle() {
    this.reveal();
    for (const act of this.#soon) act();
  }
}
