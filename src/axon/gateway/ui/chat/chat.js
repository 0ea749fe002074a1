// The chat: puts the list, the thread, the composer and the settings together. Each of them knows none of the others.

import { api, session, signOut, takePlace } from "../common/api.js";
import { asked, confirmed, toast } from "../common/dialog.js";
import { setTheme, theme } from "../common/theme.js";
import { Arrival } from "./arrival.js";
import { Composer } from "./composer.js";
import { ConnectionLine } from "./connection.js";
import { ConversationList, shortened, titleFrom, titleOf } from "./conversations.js";
import { draftsOf, takeAsked } from "./drafts.js";
import { offerExport } from "./exporting.js";
import { askedWith } from "./items.js";
import { listenForKeys } from "./keyboard.js";
import { showLedger } from "./ledger.js";
import { ModelPicker } from "./models.js";
import { Settings } from "./settings.js";
import { isSideShown, setUpSide, showSide } from "./side.js";
import { Thread } from "./thread.js";
import { Unsent } from "./unsent.js";
import { unwelcome, welcome } from "./welcome.js";

const AGAIN_MS = 3_000;
const CONVERSATION = /^\?c=conv_\w+$/;

const at = (id) => document.getElementById(id);
const others = new BroadcastChannel("axon.chat");
const settings = new Settings();
const models = new ModelPicker(
  (model) => (settings.version = model?.version || ""),
  () => settings.forgetVersion(),
);
const list = new ConversationList((id) => open(id));
const arrival = new Arrival({ onRetry: (id) => (open(id, false), composer.focus()) });
const composer = new Composer({
  onSend: send,
  onStop: stop,
  onEditLast: () => thread.editLast(),
  onType: () => thread.reveal(),
  onTyped: () => unsent.typed(),
});
const unsent = new Unsent(composer, here);
const connection = new ConnectionLine({ onLost: () => models.lost(), onBack: () => models.reload() });
const thread = new Thread(
  {
    request,
    title: ({ text, files }) => titleFrom(text || files[0]?.name || ""),
    asked: (sent) => unsent.asked(sent),
    sent: () => unsent.sent(),
    accepted: () => unsent.accepted(),
    returned: (question) => unsent.back(question),
    begun,
    left: () => list.reload(),
    link: (state, why) => connection.show(state, why),
    changed: (id) => others.postMessage({ changed: id }),
    doubted: look,
    compose: () => composer.focus(),
    ledger: showLedger,
    busy: (isBusy) => {
      composer.busy = isBusy || arrival.waiting !== null;
      at("thread").setAttribute("aria-busy", String(arrival.isReading));
    },
    waiting: () => arrival.waiting,
    announce: (text) => (at("announce").textContent = text),
    modelState: (name, state) => models.heard(name, state),
  },
  emptyThread,
);
let againTimer = 0;
let forbidden = null; // who is signed in, if that key may not ask
let numMoves = 0; // goes up with every act that says what is to be shown: the last one holds

start();

function start() {
  at("theme").value = theme();
  at("theme").addEventListener("change", (event) => setTheme(event.target.value));
  at("leave").addEventListener("click", leave);
  addEventListener("pagehide", () => (thread.settle(), unsent.settle()));
  at("new").addEventListener("click", fresh);
  at("rename").addEventListener("click", rename);
  at("erase").addEventListener("click", erase);
  at("export").addEventListener("click", () => offerExport(thread.conversation, titleOf(thread.conversation), thread.path, thread.turns));
  setUpSide();
  addEventListener("popstate", () => openFromAddress());
  addEventListener("online", () => (openAgain(), look()));
  document.addEventListener("visibilitychange", () => document.hidden || look());
  others.addEventListener("message", (event) => heard(event.data));
  listenForKeys({
    search: () => (showSide(true), at("search").focus()),
    fresh,
    settings: () => settings.toggle(),
    beside: (step) => open(list.beside(step)),
    compose: () => composer.focus(),
    stop: () => (isSideShown() ? showSide(false) : stop()),
  });
  begin();
}

/** Shows what the address names, for whoever is signed in; asks again while the server cannot say who that is. */
async function begin(isAgain = false) {
  try {
    await entered(await session());
  } catch (error) {
    if (!isAgain) said(error);
    setTimeout(begin, AGAIN_MS, true);
  }
  if (document.activeElement === document.body) composer.focus();
}

async function entered(who) {
  draftsOf(who.tenant);
  const place = takePlace();
  if (!location.search && CONVERSATION.test(place)) history.replaceState(null, "", place);
  at("who").textContent = `Signed in as ${who.tenant}`;
  at("console").hidden = !who.scopes.includes("admin");
  if (!who.scopes.includes("inference")) forbid(who);
  if (forbidden && !who.scopes.includes("read")) return fresh(false);
  models.listed.then(goOut);
  const asked = takeAsked();
  await Promise.all([forbidden ? null : models.reload(), list.reload(), asked && !idInAddress() ? goOn(asked) : openFromAddress()]);
}

/** Shows the new chat that the page was left in, and asks its question once more under the same name: the server follows the
 * answer that it has, or begins it. A question of long ago, whose name the server may have forgotten, is in the field again. */
function goOn({ body, headers, isOld }) {
  fresh(false);
  settings.set(body);
  models.choose(body.model);
  const question = askedWith(body.input);
  if (isOld || forbidden) return unsent.back(question);
  unsent.askedAgain({ body, headers }, question.text);
  thread.resume({ body, headers });
}

/** The key may not ask: the page says so before somebody types. */
function forbid(who) {
  forbidden = who;
  models.forbid("This key may not ask");
  takeBack();
  composer.forbid("This key may not ask.");
}

/** Sends a message; the first one of a chat begins its conversation. */
function send(question) {
  if (thread.isBusy || arrival.waiting) return;
  if (arrival.id || !models.isListed) return wait(question);
  if (settings.problem) settings.show();
  const problem = settings.problem || models.problem;
  if (problem) return toast(problem, "warn");
  thread.ask({ ...question, isTyped: true });
}

/** Keeps a question until there is where it goes: its conversation is open, and the models are listed. */
function wait(question) {
  arrival.wait(question);
  unsent.sent();
  if (arrival.id) open(arrival.id, false); // once more, if it could not be read
  thread.redraw();
}

/** Sends the question that waits, once; what keeps it from being sent is said, and it is in the field again. */
function goOut() {
  if (!arrival.waiting || arrival.id || !models.isListed) return;
  if (settings.problem) settings.show();
  const problem = thread.isBusy ? "An answer comes here. Send your question when it is complete." : settings.problem || models.problem;
  if (problem) {
    toast(problem, "warn");
    return takeBack();
  }
  thread.ask({ ...arrival.take(), isTyped: true, hasWaited: true });
  thread.reveal();
}

/** Puts the question that waits into its field again. */
function takeBack() {
  const question = arrival.take();
  if (!question) return;
  unsent.back(question);
  thread.redraw();
}

/** What the next answer is asked with. Whoever asks stays here: a conversation that is still being opened does not come. */
function request() {
  numMoves += 1;
  return { ...settings.request(models.select.value), metadata: { settings: settings.kept } };
}

/** The first answer of a chat has made this conversation. */
function begun(made) {
  list.put(made);
  others.postMessage({ listed: made });
  if (thread.conversation !== made) return; // somebody has gone elsewhere
  unsent.begun();
  history.pushState(null, "", `?c=${made.id}`);
  named(made);
}

async function stop() {
  if (arrival.waiting) return takeBack();
  if (!thread.isBusy) return;
  try {
    await thread.stop();
  } catch (error) {
    toast(`The answer could not be stopped: ${error.message}`, "bad");
  }
}

const idInAddress = () => new URLSearchParams(location.search).get("c") || "";

async function openFromAddress() {
  const id = idInAddress();
  if (!id) return fresh(false);
  await open(id, false);
}

/** Opens a conversation. What is shown stays until it is found, unless the address names it already. */
async function open(id, isNew = true, isQuiet = false) {
  if (!id || arrival.isComing(id)) return;
  const move = ++numMoves;
  if (thread.conversation?.id === id && !arrival.id) return;
  showSide(false);
  if (!isNew || arrival.id) arrive(id, isNew, isQuiet);
  try {
    const found = await api("GET", `v1/conversations/${encodeURIComponent(id)}`);
    if (move !== numMoves) return;
    if (!arrival.isComing(id)) arrive(id, isNew);
    named(found);
    await thread.open(found);
    if (move !== numMoves) return;
    const last = thread.path.at(-1);
    settings.set(last || {});
    if (last) models.choose(last.model);
    arrival.end();
    thread.redraw();
    goOut();
  } catch (error) {
    if (move !== numMoves) return;
    if (error.status !== 404) return arrival.isComing(id) ? unopened(error) : said(error);
    toast("That conversation is not there any more.", "warn");
    list.remove(id);
    fresh(true, arrival.isComing(id) ? id : "");
  }
}

/** Leaves what is shown for a conversation that is on its way: what is typed from now on is for that one. */
function arrive(id, isNew, isQuiet = false) {
  if (arrival.id !== id) {
    if (isNew) history.pushState(null, "", `?c=${id}`);
    if (!unsent.isFirst) keepHere();
    arrival.begin(id);
    thread.leave();
    named(null, "…");
    unsent.show();
  } else arrival.begin(id, isQuiet);
  thread.redraw();
}

/** The conversation could not be read: its place shows why, and not another one's text. It is tried again if that may pass. */
function unopened(error) {
  arrival.fail(error.message);
  thread.leave();
  named(null);
  takeBack();
  clearTimeout(againTimer);
  if (!error.status || error.status >= 500) againTimer = setTimeout(openAgain, AGAIN_MS);
}

function openAgain() {
  if (arrival.id && !arrival.isReading) open(arrival.id, false, true);
}

/** The conversation that was shown has been erased, by another tab or browser. What was being typed is kept. */
function gone(id) {
  list.remove(id);
  fresh(true, id);
  toast("That conversation was erased elsewhere.", "warn");
}

/** Shows an empty chat. What was typed in a conversation that is erased comes along. */
function fresh(isNew = true, erased = "") {
  numMoves += 1;
  if (erased) takeBack();
  else if (!unsent.isFirst) keepHere();
  arrival.end();
  if (isNew && location.search) history.pushState(null, "", location.pathname);
  thread.leave();
  if (erased) unsent.erased(erased);
  unsent.show(Boolean(erased));
  settings.set({});
  models.free();
  named(null);
  showSide(false);
  composer.focus();
}

function named(conversation, title = conversation ? titleOf(conversation) : "New chat") {
  at("title").textContent = title;
  document.title = `${title} · Axon`;
  at("conversation-actions").hidden = !conversation;
  list.mark(conversation?.id || "");
}

async function rename() {
  const conversation = thread.conversation;
  const title = await asked({ title: "Rename", label: "Title", value: titleOf(conversation) });
  if (!title?.trim()) return;
  try {
    const metadata = { ...conversation.metadata, title: shortened(title.trim()) };
    Object.assign(conversation, await api("POST", `v1/conversations/${conversation.id}`, { metadata }));
    listed(conversation);
    others.postMessage({ listed: conversation });
  } catch (error) {
    said(error);
  }
}

async function erase() {
  const { id } = thread.conversation;
  const text = `“${titleOf(thread.conversation)}” and all its branches will be erased from the server. Nobody can bring them back.`;
  if (!(await confirmed({ title: "Erase this conversation?", text, action: "Erase", danger: true }))) return;
  try {
    await api("DELETE", `v1/conversations/${id}?branches=true`);
  } catch (error) {
    if (error.status !== 404) return said(error);
  }
  list.remove(id);
  if (id === thread.conversation?.id) {
    unsent.forget();
    fresh();
  }
  unsent.erased(id);
  others.postMessage({ erased: id });
  toast("Erased.");
}

/** A conversation has another title, or has come. It is not necessarily the one that is shown. */
function listed(conversation) {
  list.put(conversation);
  if (conversation.id === thread.conversation?.id) named(Object.assign(thread.conversation, conversation));
}

/** What another tab of this browser has done. */
function heard({ changed, listed: found, erased, left }) {
  if (left) unsent.signedOut();
  if (changed && changed === thread.conversation?.id) look();
  if (found) listed(found);
  if (erased) {
    list.remove(erased);
    if (erased === thread.conversation?.id) gone(erased);
    else unsent.erased(erased);
  }
}

/** Looks whether the conversation has grown elsewhere. */
function look() {
  const id = thread.conversation?.id;
  thread.refresh().catch((error) => {
    if (error.status === 404 && id === thread.conversation?.id) gone(id);
  });
}

/** The id of the conversation that the field belongs to; empty in a new chat. */
function here() {
  return arrival.id || thread.conversation?.id || (unsent.isFirst ? idInAddress() : "");
}

/** Keeps what is in the field for the chat that is left, a question that waits among it. */
function keepHere() {
  thread.reveal();
  takeBack();
  unsent.leave();
}

/** Signs out, here and with what other tabs have kept of what was typed. */
async function leave() {
  unsent.isSigningOut = true;
  try {
    await signOut();
    others.postMessage({ left: true });
  } catch (error) {
    unsent.isSigningOut = false;
    said(error);
  }
}

/** What is shown where there are no turns. */
function emptyThread() {
  if (arrival.id) return arrival.element;
  if (forbidden) return unwelcome(forbidden, leave);
  return welcome((text, others) => {
    if (others.includes(composer.text)) composer.text = ""; // one at a time
    composer.restore(text);
    unsent.typed();
  });
}

function said(error) {
  toast(error.message, "bad");
}
