// Text that grows, in pieces that the browser lays out only when they are seen. Knows no answer.

import { make } from "../common/dialog.js";

const PIECE = 4_000;

/** Appends text at most once a frame; a long one is a list of blocks of whole lines. */
export class PlainText {
  #waiting = "";
  #frame = 0;
  #block = null;
  #length = 0;

  constructor(onPaint = () => {}) {
    this.element = make("div", { class: "flow" });
    this.onPaint = onPaint;
  }

  add(text) {
    this.#waiting += text;
    this.#frame ||= requestAnimationFrame(() => this.flush());
  }

  /** Writes at once what waits for the next frame. */
  flush() {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    let rest = this.#waiting;
    this.#waiting = "";
    while (rest) {
      const room = this.#block && this.#length < PIECE ? rest.length : rest.indexOf("\n") + 1;
      if (this.#block === null || (this.#length >= PIECE && this.#endsLine())) rest = this.#begin(rest);
      else rest = this.#write(rest, this.#length < PIECE ? Math.min(room, PIECE) : room || rest.length);
    }
    this.onPaint();
  }

  #begin(rest) {
    this.#block = make("div", { class: "piece" }, document.createTextNode(""));
    this.#length = 0;
    this.element.append(this.#block);
    return rest;
  }

  #write(rest, size) {
    this.#block.firstChild.appendData(rest.slice(0, size));
    this.#length += size;
    return rest.slice(size);
  }

  #endsLine() {
    return this.#block.firstChild.data.endsWith("\n");
  }
}
