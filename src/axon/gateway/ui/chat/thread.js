// The conversation that is shown: its turns, its branches, and the answers that come. Knows no list and no settings.

import { ApiError } from "../common/api.js";
import { toast } from "../common/dialog.js";
import { prepare, resultsOf, turnOf } from "./asking.js";
import { Pane } from "./pane.js";
import { cancel, responsesOf } from "./responses.js";
import { answerEvents, idOf, isSilent } from "./stream.js";
import { isRunning, isTaken, pathOf, treeOf, versionsOf } from "./tree.js";
import { TurnView } from "./turn.js";
import { Unseen } from "./unseen.js";

/**
 * Shows one conversation. `acts` has what its owner does: request, title, asked, sent, accepted, returned (the server does
 * not have the question), begun, left, link, changed, doubted (the conversation may have been erased), ledger, compose, busy,
 * announce, modelState, waiting (returns the element of a question that waits for the conversation, or null).
 */
export class Thread {
  #turns = [];
  #tree = treeOf([]);
  #chosen = new Map(); // the version of a question that somebody has chosen, by the turn before it
  #views = new Map(); // by the id of their turn
  #live = new Map(); // what aborts the reading of an answer, by the id of its turn
  #lost = new Set(); // the turns whose connection is lost
  #asks = new WeakMap(); // what was sent for a turn that the server has not named yet
  #pane = new Pane(() => this.#grown());
  #unseen = new Unseen(() => this.#pane.keepEnd());
  #numReads = 0;
  #lastRead = 0; // the newest reading that is shown: an older one that comes later is not

  constructor(acts, empty) {
    this.acts = acts;
    this.empty = empty;
    this.conversation = null;
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
    return this.#unseen.isThere || this.path.some(isRunning);
  }

  /** Leaves the conversation; answers that run go on at the server. */
  leave() {
    this.reveal();
    for (const reader of this.#live.values()) reader.abort();
    this.#live.clear();
    this.#lost.clear();
    this.acts.link(null);
    this.#turns = [];
    this.#pane.reset();
    this.#chosen.clear();
    this.#views.clear();
    this.conversation = null;
    this.#grown();
  }

  /** Shows anew what there is; `empty` says what that is where there are no turns. */
  redraw() {
    this.#grown();
  }

  /** Shows a conversation, and goes on with what runs in it. */
  async open(conversation) {
    this.leave();
    this.conversation = conversation;
    await this.refresh();
    this.#pane.goToEnd();
  }

  /** Reads the conversation anew, as other tabs and other clients may have gone on with it. */
  async refresh() {
    const conversation = this.conversation;
    if (!conversation) return;
    const number = ++this.#numReads;
    const before = new Set(this.#turns.filter((turn) => !turn.isLocal).map((turn) => turn.id));
    const found = await responsesOf(conversation.id);
    this.reveal();
    if (this.conversation !== conversation || number < this.#lastRead) return;
    this.#lastRead = number;
    const here = new Map(this.#turns.map((turn) => [turn.id, turn]));
    const there = new Set(found.map((turn) => turn.id));
    const num = this.#turns.length;
    this.#pinEdited();
    this.#turns = found.map((turn) => (this.#live.has(turn.id) ? here.get(turn.id) : this.#updated(here.get(turn.id), turn)));
    // What has come since the server was asked is not in its answer.
    const isKept = (turn) => turn.isLocal || this.#live.has(turn.id) || !before.has(turn.id);
    this.#turns.push(...[...here.values()].filter((turn) => !there.has(turn.id) && isKept(turn)));
    this.#grown();
    for (const turn of this.#turns) if (isRunning(turn) && !this.#live.has(turn.id)) this.#follow(turn, { id: turn.id });
    if (this.#turns.length > num) this.#pane.keepEnd();
  }

  #updated(old, turn) {
    if (!old || old.status === turn.status || !isRunning(old)) return old || turn; // one that has ended stays so
    const view = this.#views.get(turn.id);
    if (view?.isEditing && !isRunning(turn)) view.finish(turn);
    else this.#views.delete(turn.id);
    return turn;
  }

  /** Whoever edits a question goes on seeing it, whatever versions other tabs add. */
  #pinEdited() {
    const path = this.path;
    const last = path.findLastIndex((turn) => this.#views.get(turn.id)?.isEditing);
    for (const turn of path.slice(0, last + 1)) this.#chosen.set(this.#tree.parents.get(turn.id), turn.id);
  }

  /**
   * Asks the model. `after` is the id of the turn to go on from, `edits` that of the turn whose version this is; `isTyped`
   * says that the text is in the composer, or was until it had to wait (`hasWaited`). The request goes out before anything is
   * changed on the page.
   */
  ask({ text = "", files = [], results = null, after = this.#last(), edits = "", isTyped = false, hasWaited = false }) {
    this.reveal();
    if (!this.conversation && this.isBusy) return toast("Wait until the first question is at the server.", "warn");
    this.#turns = this.#turns.filter((turn) => !turn.isLocal || isRunning(turn)); // what was refused is in the way
    this.#tree = treeOf(this.#turns);
    const begins = this.conversation ? null : { metadata: { title: this.acts.title({ text, files }) } };
    const question = { text, files, results, after, edits, isTyped };
    const thread = { conversation: this.conversation, tree: this.#tree, turns: this.#turns };
    const { turn, body, headers } = prepare(question, this.acts.request(), begins, thread);
    this.#unseen.hold(() => {
      if (!this.#turns.includes(turn)) this.#turns.push(turn);
      this.#grown();
      if (edits) this.show(turn.id);
      if (isTyped && !hasWaited) this.acts.sent();
      this.#pane.sticks = true;
    });
    this.#follow(turn, { body, headers });
    this.acts.asked({ body, headers });
  }

  /** Goes on with a question that was on its way when the page was left: {body, headers}. */
  resume(asked) {
    const turn = turnOf(asked.body, true);
    this.#turns.push(turn);
    this.#grown();
    this.#follow(turn, asked);
  }

  /** Shows the question that was sent and is not shown yet, if there is one. */
  reveal() {
    this.#unseen.reveal();
  }

  /** Does now what would be done after the next paint: the page is left. */
  settle() {
    this.#unseen.settle();
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

  /**
   * Asks another version of a turn's question, unless the same one runs already; returns false where it cannot. What runs in
   * the place where it will be shown is stopped, because nobody would see it any more.
   */
  #another(turn, asked, isSame = false) {
    this.reveal();
    const twin = isSame && this.#turns.find((each) => isRunning(each) && each.metadata?.edits === turn.id);
    if (twin) {
      this.show(twin.id);
      return true;
    }
    if (this.path.some((each) => each.isLocal && isRunning(each))) {
      toast("Wait until your question is at the server, or stop it.", "warn");
      return false;
    }
    if (this.isBusy) this.stop().catch((error) => toast(`The answer before it could not be stopped: ${error.message}`, "bad"));
    this.ask({ ...asked, after: this.#tree.parents.get(turn.id), edits: turn.id });
    return true;
  }

  /** Stops the answers that are shown and run. */
  async stop() {
    this.reveal();
    for (const turn of this.path.filter(isRunning)) {
      this.#views.get(turn.id)?.say("Stopping…");
      if (!turn.isLocal) await cancel(turn.id);
      else if (this.#lost.has(turn)) this.#live.get(turn.id)?.abort(); // it is taken back: the server is not there
      else await this.#stopUnnamed(turn);
    }
  }

  /**
   * Stops an answer before its first event: for the reader at once, and at the server as soon as its id is known. The
   * question is sent once more for that, under the same name, so that it is not asked twice.
   */
  async #stopUnnamed(turn) {
    turn.status = "cancelled";
    this.#live.get(turn.id)?.abort();
    this.#views.get(turn.id)?.finish(turn);
    this.#tellBusy();
    let stopped = null;
    try {
      const id = await idOf(this.#asks.get(turn));
      if (id) stopped = await cancel(id);
    } finally {
      if (!stopped) this.#undo(turn); // the server did not take it
    }
    if (!stopped || !this.#turns.includes(turn)) return;
    this.#accepted(turn, stopped);
    this.#ended(turn, stopped);
  }

  /** Opens the last question for editing. */
  editLast() {
    const last = this.path.at(-1);
    if (last) this.#views.get(last.id)?.edit();
  }

  async #follow(turn, ask) {
    const reader = new AbortController();
    this.#live.set(turn.id, reader);
    this.#asks.set(turn, ask);
    if (!this.#unseen.isThere) {
      this.#tellBusy();
      this.#view(turn).begin();
    }
    let isFirst = true;
    const onLink = ({ lost, known, why }) => this.#link(turn, lost, known, why);
    try {
      for await (const event of answerEvents(ask, { signal: reader.signal, onLink })) {
        if (reader.signal.aborted) break;
        if (event.response && turn.isLocal) this.#accepted(turn, event.response);
        if (!isSilent(event)) this.#unseen.reveal(event.type === "response.output_item.added");
        this.#views.get(turn.id)?.event(event);
        if (event.axon?.queue) this.acts.modelState(turn.model, event.axon.queue.state);
        if (isFirst && event.type === "response.output_item.added") {
          this.#unseen.later(() => isRunning(turn) && this.acts.announce("The answer begins.")); // it may be complete by then
          this.#unseen.later(() => this.acts.modelState(turn.model, "ready"));
        }
        isFirst &&= event.type !== "response.output_item.added";
        if (event.response && /completed|failed|incomplete$/.test(event.type)) this.#ended(turn, event.response);
      }
    } catch (error) {
      this.reveal();
      this.#failed(turn, error);
    } finally {
      if (this.#live.get(turn.id) === reader) this.#live.delete(turn.id);
      this.#lost.delete(turn);
      if (!this.#lost.size && !reader.signal.aborted) this.#tellLink();
      this.#tellBusy();
    }
    if (reader.signal.aborted && turn.isLocal && isRunning(turn)) this.#undo(turn);
  }

  /** Takes a question back that was not accepted, as far as this page knows. */
  #undo(turn) {
    if (this.#turns.includes(turn)) this.takeBack(turn);
    if (turn.begins) this.acts.left(); // the server may have it all the same
  }

  /** The server has the question: from now on the turn has its real name. */
  #accepted(turn, response) {
    const [local, view] = [turn.id, this.#views.get(turn.id)];
    if (turn.isTyped) this.#unseen.later(() => this.acts.accepted());
    const parent = this.#tree.parents.get(local);
    if (turn.begins) {
      const made = { id: response.conversation.id, created_at: response.created_at, ...turn.begins };
      turn.begins = null;
      this.conversation = made;
      this.#unseen.later(() => this.acts.begun(made));
    }
    if (this.#turns.some((each) => each.id === response.id)) this.#turns = this.#turns.filter((each) => each !== turn && each.id !== response.id).concat(turn);
    Object.assign(turn, response, { isLocal: false, input: turn.input });
    this.#views.delete(local);
    if (view) this.#views.set(turn.id, view);
    if (this.#live.has(local)) this.#live.set(turn.id, this.#live.get(local));
    this.#live.delete(local);
    if (this.#chosen.get(parent) === local) this.#chosen.set(parent, turn.id);
    if (view) this.#grown();
    const { id } = this.conversation;
    this.#unseen.later(() => this.acts.changed(id));
  }

  #ended(turn, response) {
    Object.assign(turn, response, { input: turn.input });
    this.#views.get(turn.id)?.finish(turn);
    this.acts.announce(turn.status === "completed" ? "The answer is complete." : "The answer has ended.");
    this.#offerCalls();
    this.#tellBusy();
    this.#pane.keepEnd();
    this.acts.changed(this.conversation?.id);
    if (turn.status === "cancelled") this.acts.doubted(); // an answer also ends so when its conversation is erased
  }

  #failed(turn, error) {
    const isGone = error instanceof ApiError && error.status === 404;
    if (isGone) this.acts.doubted();
    if (isGone && !turn.isLocal) return this.#drop(turn);
    if (!(error instanceof ApiError)) console.warn(error);
    const isRefused = turn.isLocal && turn.isTyped;
    const message = isRefused ? `${error.message} Your question is in the field below again.` : error.message;
    Object.assign(turn, { status: "failed", error: { message } });
    const view = this.#views.get(turn.id);
    view?.finish(turn);
    if (isRefused && view) this.acts.returned(view.asked);
    this.#offerCalls();
    this.#tellBusy();
  }

  #drop(turn) {
    this.#turns = this.#turns.filter((each) => each !== turn);
    this.#views.delete(turn.id);
    this.#grown();
  }

  /** Takes a question back that the server does not have. */
  takeBack(turn) {
    const { asked } = this.#view(turn); // it has none while another version is shown
    this.#drop(turn);
    this.acts.returned(asked);
  }

  #link(turn, lost, known, why) {
    this.reveal();
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
    const path = whole.slice(-this.#pane.limit);
    const shown = path.map((turn) => this.#view(turn));
    for (const [index, view] of shown.entries()) view.setVersions(versionsOf(this.#tree, path[index].id));
    const waiting = this.acts.waiting();
    const there = shown.length || waiting ? shown.map((view) => view.element) : [this.empty()];
    if (waiting) there.push(waiting);
    const needed = new Set(path.map((turn) => turn.id));
    for (const id of this.#views.keys()) if (!needed.has(id) && !this.#live.has(id)) this.#views.delete(id);
    this.#pane.put(there, whole.length - path.length);
    this.#offerCalls();
    this.#tellBusy();
  }

  #offerCalls() {
    for (const view of this.#views.values()) view.offerCalls();
  }

  #view(turn) {
    let view = this.#views.get(turn.id);
    if (!view) {
      view = new TurnView(turn, this.#actsOf(), () => this.#pane.keepEnd());
      this.#views.set(turn.id, view);
    }
    return view;
  }

  #actsOf() {
    return {
      nameOf: (call) => this.#turns.flatMap((turn) => turn.output || []).find((item) => item.call_id === call)?.name || call,
      isOpen: (item) => !this.#turns.some((turn) => isTaken(turn) && turn.input?.some((each) => each.call_id === item.call_id)),
      edit: (turn, text, files) => this.#another(turn, { text, files }),
      edited: () => this.acts.compose(),
      again: (turn) => this.#another(turn, { ...this.#views.get(turn.id).asked, results: null }, true),
      show: (id, isEarlier) => (this.show(id), this.#views.get(id)?.focusVersions(isEarlier)),
      ledger: (turn) => this.acts.ledger(turn),
      result: (turn, call, output) => this.#result(turn, call, output),
      dropped: (turn) => this.takeBack(turn),
    };
  }

  /** Sends the results of a turn's calls once each has one. */
  #result(turn, call, output) {
    turn.results = { ...turn.results, [call]: output };
    const results = resultsOf(turn);
    if (!results) return;
    this.ask({ results, after: turn.id });
    this.reveal(); // the calls are not open any more
  }
}
