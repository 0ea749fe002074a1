// One turn on the page: the question, and the answer while it comes and when it is there. Sends nothing itself.

import { ApiError } from "../common/api.js";
import { make } from "../common/dialog.js";
import { askedWith, callCard, folded, indented, pretty, questionOf, saidIn } from "./items.js";
import { PlainText } from "./plain.js";
import { copied, rendered } from "./rendered.js";
import { isRunning } from "./tree.js";

const soon = new IntersectionObserver(
  (entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      soon.unobserve(entry.target);
      entry.target.render?.();
    }
  },
  { rootMargin: "800px" },
);

/** Shows a turn. `acts` has what its buttons do: edit (true if it is asked), edited, again, show (a version), ledger, result, dropped. */
export class TurnView {
  #open = new Map();
  #shownVersions = "";
  #shownCalls = "";

  constructor(turn, acts, onPaint) {
    this.turn = turn;
    this.acts = acts;
    this.onPaint = onPaint;
    this.question = make("div", { class: "asked" });
    this.versions = make("div", { class: "versions", hidden: true });
    this.items = make("div", { class: "said" });
    this.state = make("p", { class: "turn-state", hidden: true });
    this.foot = make("div", { class: "row foot" });
    this.answer = make("div", { class: "answer" }, this.items, this.state, this.foot);
    const ask = make("div", { class: "question" }, make("h2", { class: "visually-hidden" }, "You"), this.question);
    this.tools = make("div", { class: "row foot" });
    ask.append(make("div", { class: "row foot end" }, this.versions, this.tools));
    this.element = make("article", { class: "turn" }, ask, make("h2", { class: "visually-hidden" }, "Answer"), this.answer);
    this.#fillQuestion();
    if (isRunning(turn)) this.begin();
    else this.finish(turn);
  }

  #fillQuestion() {
    this.asked = askedWith(this.turn.input);
    this.question.replaceChildren(...questionOf(this.asked, this.acts.nameOf));
    this.tools.replaceChildren();
    if (this.asked.text) this.tools.append(this.#button("Edit", () => this.edit()));
  }

  /** Whether somebody is changing the question. */
  get isEditing() {
    return this.question.querySelector(".edit") !== null;
  }

  /** Gives the focus to the button that goes on in the same direction, else to the other one. */
  focusVersions(isEarlier) {
    const [earlier, later] = this.versions.querySelectorAll("button");
    const [wanted, other] = isEarlier ? [earlier, later] : [later, earlier];
    (wanted?.disabled ? other : wanted)?.focus({ preventScroll: true });
  }

  /** Shows ‹2/3› where the question has several versions. */
  setVersions({ ids, index }) {
    const now = [index, ...ids].join();
    if (now === this.#shownVersions) return; // its buttons may have the focus
    this.#shownVersions = now;
    this.versions.hidden = ids.length < 2;
    if (ids.length < 2) return this.versions.replaceChildren();
    const step = (to, sign, words) => {
      const button = this.#button(sign, () => this.acts.show(ids[to], to < index), words);
      button.disabled = to < 0 || to >= ids.length;
      return button;
    };
    const count = make("span", { class: "hint" }, `${index + 1}/${ids.length}`);
    count.setAttribute("aria-label", `Version ${index + 1} of ${ids.length}`);
    count.setAttribute("role", "img");
    this.versions.replaceChildren(step(index - 1, "‹", "Earlier version"), count, step(index + 1, "›", "Later version"));
  }

  /** Shows the answer as one that comes. */
  begin() {
    this.#open.clear();
    this.items.replaceChildren();
    this.foot.replaceChildren();
    this.element.classList.add("running");
    this.say("Waiting for the first word…");
  }

  /** Shows an event of the stream. */
  event(event) {
    const index = event.output_index;
    switch (event.type) {
      case "response.created":
        if (this.#open.size) this.begin();
        break;
      case "response.queued":
        this.say(waiting(event.axon?.queue));
        break;
      case "response.output_item.added":
        this.say("");
        this.#openItem(index, event.item);
        break;
      case "response.reasoning_text.delta":
      case "response.output_text.delta":
      case "response.function_call_arguments.delta":
        this.#open.get(index)?.add(event.delta);
        break;
      case "response.output_item.done":
        if (event.item.type === "reasoning") this.#open.get(index)?.fold();
    }
  }

  #openItem(index, item) {
    if (item.type === "reasoning") {
      const text = new PlainText(this.onPaint);
      const summary = make("summary", {}, "Reasoning…");
      const box = make("details", { class: "thinking" }, summary, text.element);
      this.items.append(box);
      text.fold = () => (summary.textContent = "Reasoning");
      this.#open.set(index, text);
      return;
    }
    const text = new PlainText(this.onPaint);
    if (item.type === "function_call") {
      const name = make("p", { class: "call-name" }, "The model calls ", make("strong", {}, item.name));
      this.items.append(make("section", { class: "call" }, name, text.element));
    } else this.items.append(text.element);
    this.#open.set(index, text);
  }

  /** Shows the answer as it is in the end. */
  finish(turn) {
    for (const text of this.#open.values()) text.flush();
    this.turn = turn;
    this.element.classList.remove("running");
    this.say(ending(turn), turn.status === "failed" ? "bad" : "");
    const shown = (turn.output || []).map((item) => this.#finished(item));
    if (shown.length || !this.#open.size) this.items.replaceChildren(...shown);
    this.#open.clear();
    this.#shownCalls = this.#openCalls();
    this.#fillFoot();
  }

  /** Offers a field for the result of each call that is open, and of no other: another tab may have sent it, or the server may
   * not have taken it. */
  offerCalls() {
    if (isRunning(this.turn) || this.#openCalls() === this.#shownCalls) return;
    const hadFocus = this.items.contains(document.activeElement);
    this.finish(this.turn);
    if (hadFocus) this.acts.edited();
  }

  #openCalls() {
    const calls = (this.turn.output || []).filter((item) => item.type === "function_call");
    return calls.filter((item) => this.acts.isOpen(item)).map((item) => item.call_id).join();
  }

  #finished(item) {
    if (item.type === "reasoning") {
      return folded("thinking", "Reasoning", item.content.map((part) => part.text).join(""));
    }
    if (item.type === "function_call") return callCard(item, this.acts.isOpen(item) && this.#sendsResult(), this.turn.results?.[item.call_id]);
    const text = item.content.map((part) => part.text || "").join("");
    const format = this.turn.text?.format || {};
    if (format.type !== "text" && indented(text) !== text) return pretty(text, format.name || "JSON");
    return this.#markdown(text);
  }

  #sendsResult() {
    return (call, output) => this.acts.result(this.turn, call, output);
  }

  /** Returns the text, which is rendered when it is about to be seen. */
  #markdown(text) {
    const plain = new PlainText();
    plain.add(text);
    plain.flush();
    const box = make("div", { class: "markdown" }, plain.element);
    box.render = async () => {
      try {
        box.replaceChildren(await rendered(text));
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        // It stays as it is: plain text that can be read all the same.
      }
      this.onPaint();
    };
    soon.observe(box);
    return box;
  }

  #fillFoot() {
    const turn = this.turn;
    this.foot.replaceChildren();
    if (turn.isLocal) {
      this.foot.append(this.#button("Take back", () => this.acts.dropped(turn)));
      return;
    }
    if (turn.output?.length) {
      const copy = this.#button("Copy", () => copied(saidIn(this.turn.output), copy), "Copy the answer");
      this.foot.append(copy);
    }
    if (this.asked.text) this.foot.append(this.#button("Ask again", () => this.acts.again(turn)));
    this.foot.append(this.#button("Why was this slow?", () => this.acts.ledger(turn)));
    this.foot.append(make("span", { class: "hint" }, [turn.model, tokens(turn)].filter(Boolean).join(" · ")));
  }

  /** Lets the question be changed in its place. */
  edit() {
    const area = make("textarea", { value: this.asked.text, rows: 3, dir: "auto", "aria-label": "Edit the question" });
    const leave = () => {
      this.#fillQuestion();
      this.tools.querySelector("button")?.focus();
    };
    const cancel = this.#button("Cancel", leave);
    const send = make("button", { class: "primary", type: "submit" }, "Ask");
    const form = make("form", { class: "edit" }, area, make("div", { class: "row end" }, cancel, send));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (!area.value.trim() || !this.acts.edit(this.turn, area.value, this.asked.files)) return;
      this.#fillQuestion();
      this.acts.edited();
    });
    area.addEventListener("keydown", (event) => {
      if (event.key === "Escape") {
        event.stopPropagation();
        leave();
      }
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        form.requestSubmit();
      }
    });
    this.question.replaceChildren(form);
    this.tools.replaceChildren();
    area.focus();
  }

  /** Shows one line below the answer. */
  say(text, kind = "") {
    this.state.textContent = text;
    this.state.hidden = !text;
    this.state.className = `turn-state ${kind}`;
  }

  #button(text, act, label) {
    const button = make("button", { class: "plain small", type: "button" }, text);
    if (label) button.setAttribute("aria-label", label);
    button.addEventListener("click", act);
    return button;
  }
}

/** Returns how a turn waits for its model, in words. */
export function waiting(queue) {
  if (!queue) return "Waiting for the first word…";
  const time = queue.expected_wait_s === null ? "" : ` It will take about ${Math.max(1, Math.round(queue.expected_wait_s))} s.`;
  const place = queue.position > 1 ? ` ${queue.position - 1} before you.` : "";
  const what = { cold: "The model is being started.", loading: "The model is loading.", failed: "The model could not be loaded; that is tried again." };
  return (what[queue.state] || "Waiting for a free worker.") + time + place;
}

function ending(turn) {
  if (turn.status === "cancelled") return "Stopped. The model will not remember this question; ask again or edit it.";
  const why = turn.error?.message || "";
  if (turn.status === "failed") return why && !/^[a-z_]+$/.test(why) ? why : "The answer failed. Ask again."; // a code is no sentence
  if (turn.status === "incomplete") return "Cut off at the longest answer allowed. Settings has the limit; ask to go on.";
  return "";
}

function tokens(turn) {
  const used = turn.usage;
  return used ? `${used.input_tokens} + ${used.output_tokens} tokens` : "";
}
