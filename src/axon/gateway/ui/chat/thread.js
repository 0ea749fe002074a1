// The conversation that is shown: its turns, its branches, and the answers that come. Knows no list and no settings.

import { api, ApiError } from "../common/api.js";
import { make } from "../common/dialog.js";
import { filePart } from "./items.js";
import { answerEvents, newName } from "./stream.js";
import { goingOn, isRunning, pathOf, treeOf, versionsOf } from "./tree.js";
import { TurnView } from "./turn.js";

const PAGE = 100;
const NEAR_PX = 80;
const SHOWN = 60;

/** Shows one conversation. `acts` has what its owner does: request, link, changed, ledger, taken, busy, announce. */
export class Thread {
  #turns = [];
  #tree = treeOf([]);
  #chosen = new Map();
  #views = new Map();
  #live = new Map();
  #lost = new Set();
  #sticks = true;
  #limit = SHOWN;

  constructor(acts, empty) {
    this.acts = acts;
    this.empty = empty;
    this.conversation = null;
    this.element = document.getElementById("thread");
    this.toEnd = document.getElementById("to-end");
    this.element.addEventListener("scroll", () => this.#scrolled(), { passive: true });
    this.toEnd.addEventListener("click", () => this.#stick(true));
  }

  get turns() {
    return this.#turns;
  }

  /** The turns that are shown, from the first to the last. */
  get path() {
    const known = new Map(this.#turns.map((turn) => [turn.id, turn]));
    return pathOf(this.#tree, this.#chosen).map((id) => known.get(id));
  }

  get isBusy() {
    return this.path.some(isRunning);
  }

  /** Leaves the conversation; answers that run go on at the server. */
  leave() {
    for (const reader of this.#live.values()) reader.abort();
    this.#live.clear();
    this.#lost.clear();
    this.acts.link(null);
    this.#turns = [];
    this.#limit = SHOWN;
    this.#chosen.clear();
    this.#views.clear();
    this.conversation = null;
    this.#grown();
  }

  /** Shows a conversation, and goes on with what runs in it. */
  async open(conversation) {
    this.leave();
    this.conversation = conversation;
    await this.refresh();
    this.#stick(true);
  }

  /** Reads the conversation anew, as other tabs and other clients may have gone on with it. */
  async refresh() {
    const conversation = this.conversation;
    if (!conversation) return;
    const found = await responsesOf(conversation.id);
    if (this.conversation !== conversation) return;
    const here = new Map(this.#turns.map((turn) => [turn.id, turn]));
    const there = new Set(found.map((turn) => turn.id));
    const before = this.#turns.length;
    this.#turns = found.map((turn) => (this.#live.has(turn.id) ? here.get(turn.id) : this.#updated(here.get(turn.id), turn)));
    this.#turns.push(...[...here.values()].filter((turn) => !there.has(turn.id) && (turn.isLocal || this.#live.has(turn.id))));
    this.#grown();
    for (const turn of this.#turns) if (isRunning(turn) && !this.#live.has(turn.id)) this.#follow(turn, { id: turn.id });
    if (this.#turns.length > before) this.#stick(this.#sticks);
  }

  #updated(old, turn) {
    if (old && old.status !== turn.status) this.#views.delete(turn.id);
    return old && old.status === turn.status ? old : turn;
  }

  /** Asks the model. `after` is the id of the turn to go on from, `edits` that of the turn whose version this is. */
  ask({ text = "", files = [], results = null, after = this.#last(), edits = "" }) {
    this.#turns = this.#turns.filter((turn) => !turn.isLocal || isRunning(turn)); // what was refused is in the way
    this.#tree = treeOf(this.#turns);
    const input = results || [{ type: "message", role: "user", content: [{ type: "input_text", text }, ...files.map((file) => filePart(file.name, file.text))] }];
    const on = goingOn(this.#tree, this.#turns.filter((turn) => !turn.isLocal), this.conversation.id, after);
    const asked = this.acts.request();
    const metadata = { ...asked.metadata, ...(edits ? { edits } : {}) };
    const body = { ...asked, ...on.fields, input, metadata, stream: true, background: true, store: true };
    const headers = { ...on.headers, "idempotency-key": newName(), "x-axon-ledger": "true" };
    const turn = {
      id: `local-${newName()}`,
      isLocal: true,
      status: "in_progress",
      model: asked.model,
      input,
      metadata,
      conversation: on.fields.conversation ? { id: on.fields.conversation } : null,
      previous_response_id: on.fields.previous_response_id || null,
      text: asked.text || {},
    };
    this.#turns.push(turn);
    this.#grown();
    if (edits) this.show(turn.id);
    this.#stick(true);
    return this.#follow(turn, { body, headers });
  }

  /** The id of the last turn that is shown and that the server has. */
  #last() {
    return this.path.findLast((turn) => !turn.isLocal)?.id || "";
  }

  /** Shows one version of a question. */
  show(id) {
    this.#chosen.set(this.#tree.parents.get(id), id);
    this.#grown();
  }

  /** Stops the answers that are shown and run. */
  async stop() {
    for (const turn of this.path.filter(isRunning)) {
      this.#views.get(turn.id)?.say("Stopping…");
      if (!turn.isLocal) await api("POST", `v1/responses/${turn.id}/cancel`);
      else this.#live.get(turn.id)?.abort(); // the server may not have it; if it has, the next look finds it
    }
  }

  /** Opens the last question for editing. */
  editLast() {
    const last = this.path.at(-1);
    if (last) this.#views.get(last.id)?.edit();
  }

  async #follow(turn, ask) {
    const reader = new AbortController();
    this.#live.set(turn.id, reader);
    this.#tellBusy();
    this.#view(turn).begin();
    let isFirst = true;
    const onLink = ({ lost, known, why }) => this.#link(turn, lost, known, why);
    try {
      for await (const event of answerEvents(ask, { signal: reader.signal, onLink })) {
        if (event.response && turn.isLocal) this.#accepted(turn, event.response);
        const view = this.#views.get(turn.id);
        view?.event(event);
        if (isFirst && event.type === "response.output_item.added") this.acts.announce("The answer begins.");
        isFirst &&= event.type !== "response.output_item.added";
        if (event.response && /completed|failed|incomplete$/.test(event.type)) this.#ended(turn, event.response);
      }
    } catch (error) {
      this.#failed(turn, error);
    } finally {
      if (this.#live.get(turn.id) === reader) this.#live.delete(turn.id);
      this.#lost.delete(turn);
      if (!this.#lost.size && !reader.signal.aborted) this.#tellLink();
      this.#tellBusy();
    }
    if (reader.signal.aborted && turn.isLocal && this.#turns.includes(turn)) this.takeBack(turn);
  }

  /** The server has the question: from now on the turn has its real name. */
  #accepted(turn, response) {
    const [local, view] = [turn.id, this.#views.get(turn.id)];
    const parent = this.#tree.parents.get(local);
    if (this.#turns.some((each) => each.id === response.id)) this.#turns = this.#turns.filter((each) => each !== turn && each.id !== response.id).concat(turn);
    Object.assign(turn, response, { isLocal: false, input: turn.input });
    this.#views.delete(local);
    this.#views.set(turn.id, view);
    this.#live.set(turn.id, this.#live.get(local));
    this.#live.delete(local);
    if (this.#chosen.get(parent) === local) this.#chosen.set(parent, turn.id);
    this.#grown();
    this.acts.changed(this.conversation.id);
  }

  #ended(turn, response) {
    Object.assign(turn, response, { input: turn.input });
    this.#views.get(turn.id)?.finish(turn);
    this.acts.announce(turn.status === "completed" ? "The answer is complete." : "The answer has ended.");
    this.#tellBusy();
    this.#kept();
    this.acts.changed(this.conversation?.id);
  }

  #failed(turn, error) {
    if (error instanceof ApiError && error.status === 404 && !turn.isLocal) return this.#drop(turn);
    if (!(error instanceof ApiError)) console.warn(error);
    Object.assign(turn, { status: "failed", error: { message: error.message } });
    this.#views.get(turn.id)?.finish(turn);
    this.#tellBusy();
  }

  #drop(turn) {
    this.#turns = this.#turns.filter((each) => each !== turn);
    this.#views.delete(turn.id);
    this.#grown();
  }

  /** Takes a question back that the server does not have. */
  takeBack(turn) {
    const view = this.#views.get(turn.id);
    this.#drop(turn);
    this.acts.taken(view.asked);
  }

  #link(turn, lost, known, why) {
    if (lost) this.#lost.add(turn);
    else this.#lost.delete(turn);
    this.#tellLink(lost && !known, why);
  }

  #tellLink(isUnsent = false, why = "") {
    this.acts.link(this.#lost.size ? (isUnsent ? "unsent" : "lost") : "back", why);
  }

  #tellBusy() {
    this.acts.busy(this.isBusy);
  }

  /** Shows what there is now: the path through the tree, with each turn's view. */
  #grown() {
    this.#tree = treeOf(this.#turns);
    const whole = this.path;
    const path = whole.slice(-this.#limit);
    const shown = path.map((turn) => this.#view(turn));
    for (const [index, view] of shown.entries()) view.setVersions(versionsOf(this.#tree, path[index].id));
    const there = shown.length ? shown.map((view) => view.element) : [this.empty()];
    if (whole.length > path.length) there.unshift(this.#earlier(whole.length - path.length));
    const needed = new Set(path.map((turn) => turn.id));
    for (const id of this.#views.keys()) if (!needed.has(id) && !this.#live.has(id)) this.#views.delete(id);
    const same = there.length === this.element.children.length && there.every((each, index) => each === this.element.children[index]);
    if (!same) this.element.replaceChildren(...there);
    this.#tellBusy();
  }

  /** Returns the button in the place of the turns that are not shown, so that a long chat takes no more room. */
  #earlier(num) {
    const button = make("button", { class: "plain earlier", type: "button" }, `Show ${Math.min(num, SHOWN)} earlier of ${num}`);
    button.addEventListener("click", () => {
      this.#limit += SHOWN;
      this.#sticks = false;
      this.#grown();
    });
    return button;
  }

  #view(turn) {
    let view = this.#views.get(turn.id);
    if (!view) {
      view = new TurnView(turn, this.#actsOf(), () => this.#kept());
      this.#views.set(turn.id, view);
    }
    return view;
  }

  #actsOf() {
    return {
      nameOf: (call) => this.#turns.flatMap((turn) => turn.output || []).find((item) => item.call_id === call)?.name || call,
      isOpen: (item) => !this.#turns.some((turn) => turn.input?.some((each) => each.call_id === item.call_id)),
      edit: (turn, text, files) => this.ask({ text, files, after: this.#tree.parents.get(turn.id), edits: turn.id }),
      again: (turn) => {
        const { asked } = this.#views.get(turn.id);
        this.ask({ ...asked, results: null, after: this.#tree.parents.get(turn.id), edits: turn.id });
      },
      show: (id) => this.show(id),
      ledger: (turn) => this.acts.ledger(turn),
      result: (turn, call, output) => this.#result(turn, call, output),
      dropped: (turn) => this.takeBack(turn),
    };
  }

  /** Sends the results of a turn's calls once each has one. */
  #result(turn, call, output) {
    turn.results = { ...turn.results, [call]: output };
    const calls = turn.output.filter((item) => item.type === "function_call");
    if (calls.some((item) => !(item.call_id in turn.results))) return;
    const results = calls.map((item) => ({ type: "function_call_output", call_id: item.call_id, output: turn.results[item.call_id] }));
    this.ask({ results, after: turn.id });
    this.#views.get(turn.id)?.finish(turn);
  }

  #scrolled() {
    const { scrollTop, scrollHeight, clientHeight } = this.element;
    this.#sticks = scrollHeight - scrollTop - clientHeight < NEAR_PX;
    this.toEnd.hidden = this.#sticks;
  }

  /** Stays at the end while text is added, if the reader was there. */
  #kept() {
    if (this.#sticks) this.#stick(true);
  }

  #stick(sticks) {
    this.#sticks = sticks;
    if (sticks) this.element.scrollTop = this.element.scrollHeight;
  }
}

async function responsesOf(id) {
  const found = [];
  for (let after = ""; ; ) {
    const page = await api("GET", `v1/conversations/${id}/responses?limit=${PAGE}${after && `&after=${after}`}`);
    found.push(...page.data);
    if (!page.has_more) return found;
    after = page.last_id;
  }
}
