// The pane in which turns are shown: its elements, and where the reader is in it. Knows no turn.

import { make } from "../common/dialog.js";

const NEAR_PX = 80;
const SHOWN = 60;

/** Shows elements, the newest at the end, and stays there while they grow; `onMore` shows those that came before them. */
export class Pane {
  #limit = SHOWN;

  constructor(onMore) {
    this.onMore = onMore;
    this.sticks = true; // the reader is at the end, and stays there while it grows
    this.element = document.getElementById("thread");
    this.newest = document.getElementById("to-end");
    this.element.addEventListener("scroll", () => this.#scrolled(), { passive: true });
    this.newest.addEventListener("click", () => this.goToEnd());
  }

  /** The most turns that are shown, so that a long chat takes no more room than that. */
  get limit() {
    return this.#limit;
  }

  /** Another conversation comes: as many turns are shown as at first. */
  reset() {
    this.#limit = SHOWN;
  }

  /** Shows these elements, before them a button for the `numEarlier` ones. Those that stay are not moved: they keep their
   * focus and what is typed in them. */
  put(there, numEarlier) {
    if (numEarlier) there.unshift(this.#earlier(numEarlier));
    const stays = new Set(there);
    for (const each of [...this.element.children]) if (!stays.has(each)) each.remove();
    for (const [index, each] of there.entries()) {
      const now = this.element.children[index];
      if (now !== each) this.element.insertBefore(each, now || null);
    }
  }

  /** Moves the view to the end, and keeps it there. */
  goToEnd() {
    this.sticks = true;
    this.element.scrollTop = this.element.scrollHeight;
  }

  /** Moves the view to the end again after the content grew, if the reader was there. */
  keepEnd() {
    if (this.sticks) this.goToEnd();
  }

  #earlier(num) {
    const button = make("button", { class: "plain earlier", type: "button" }, `Show ${Math.min(num, SHOWN)} earlier of ${num}`);
    button.addEventListener("click", () => {
      this.#limit += SHOWN;
      this.sticks = false;
      this.onMore();
      (this.element.querySelector(".earlier") || this.element).focus({ preventScroll: true });
    });
    return button;
  }

  #scrolled() {
    const { scrollTop, scrollHeight, clientHeight } = this.element;
    this.sticks = scrollHeight - scrollTop - clientHeight < NEAR_PX;
    this.newest.hidden = this.sticks;
  }
}
