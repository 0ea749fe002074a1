// The chat: puts the list, the thread, the composer and the settings together. Each of them knows none of the others.

import { api, session, signOut } from "../common/api.js";
import { asked, confirmed, make, toast } from "../common/dialog.js";
import { setTheme, theme } from "../common/theme.js";
import { Composer } from "./composer.js";
import { ConversationList, titleFrom, titleOf } from "./conversations.js";
import { offerExport } from "./exporting.js";
import { listenForKeys } from "./keyboard.js";
import { showLedger } from "./ledger.js";
import { ModelPicker } from "./models.js";
import { Settings } from "./settings.js";
import { Thread } from "./thread.js";

const LINKS = {
  lost: "Connection lost. The answer goes on at the server; reconnecting…",
  unsent: "The server cannot be reached. Your message is kept here and sent as soon as it can be; trying again…",
  back: "Connected again. Nothing was lost.",
};
const BACK_MS = 4_000;
const TRIES = ["Explain how a CPU cache works, with a small diagram.", "Write a Python function that checks for a palindrome.", "Compare three ways to store passwords in a table."];

const at = (id) => document.getElementById(id);
const others = new BroadcastChannel("axon.chat");
const settings = new Settings();
const models = new ModelPicker((model) => (settings.version = model?.version || ""));
const list = new ConversationList((id) => open(id));
const composer = new Composer({ onSend: send, onStop: stop, onEditLast: () => thread.editLast() });
const thread = new Thread(
  {
    request: () => ({ ...settings.request(models.select.value), metadata: { settings: settings.kept } }),
    link: showLink,
    changed: (id) => others.postMessage({ changed: id }),
    ledger: showLedger,
    taken: ({ text, files }) => composer.restore(text, files),
    busy: (isBusy) => (composer.busy = isBusy),
    announce: (text) => (at("announce").textContent = text),
  },
  emptyThread,
);
let linkTimer = 0;
let wasLost = false;

start();

async function start() {
  at("theme").value = theme();
  at("theme").addEventListener("change", (event) => setTheme(event.target.value));
  at("leave").addEventListener("click", () => signOut().catch(said));
  at("new").addEventListener("click", fresh);
  at("rename").addEventListener("click", rename);
  at("erase").addEventListener("click", erase);
  at("export").addEventListener("click", () => offerExport(thread.conversation, titleOf(thread.conversation), thread.path, thread.turns));
  at("side-open").addEventListener("click", () => (showSide(true), at("side-close").focus()));
  at("side-close").addEventListener("click", () => showSide(false));
  at("shade").addEventListener("click", () => showSide(false));
  addEventListener("popstate", () => openFromAddress());
  document.addEventListener("visibilitychange", () => document.hidden || look());
  others.addEventListener("message", (event) => heard(event.data));
  listenForKeys({ search: () => (showSide(true), at("search").focus()), fresh, settings: () => settings.toggle(), beside: (step) => open(list.beside(step)), compose: () => composer.focus(), stop: () => (document.body.classList.contains("side-open") ? showSide(false) : stop()) });
  try {
    const who = await session();
    at("who").textContent = `Signed in as ${who.tenant}`;
    await Promise.all([models.reload(), list.reload(), openFromAddress()]);
  } catch (error) {
    said(error);
  }
  composer.focus();
}

/** Sends a message; the first one of a chat makes its conversation. */
async function send({ text, files }) {
  const problem = settings.problem || (models.chosen ? "" : "No model can answer yet. Wait until one is listed, or ask whoever runs this server.");
  if (problem) return toast(problem, "warn");
  composer.clear();
  try {
    if (!thread.conversation) await begin(titleFrom(text || files[0].name));
  } catch (error) {
    composer.restore(text, files);
    return toast(`The message was not sent: ${error.message} It is kept in its field.`, "bad");
  }
  await thread.ask({ text, files });
}

async function begin(title) {
  const made = await api("POST", "v1/conversations", { metadata: { title } });
  await thread.open(made);
  history.pushState(null, "", `?c=${made.id}`);
  list.put(made);
  named(made);
  others.postMessage({ listed: made });
}

async function stop() {
  if (!thread.isBusy) return;
  try {
    await thread.stop();
  } catch (error) {
    toast(`The answer could not be stopped: ${error.message}`, "bad");
  }
}

function openFromAddress() {
  const id = new URLSearchParams(location.search).get("c") || "";
  return id ? open(id, false) : fresh(false);
}

async function open(id, isNew = true) {
  if (!id || thread.conversation?.id === id) return;
  showSide(false);
  try {
    const found = await api("GET", `v1/conversations/${encodeURIComponent(id)}`);
    if (isNew) history.pushState(null, "", `?c=${found.id}`);
    named(found);
    await thread.open(found);
    const last = thread.path.at(-1);
    settings.set(last || {});
    if (last) models.choose(last.model);
  } catch (error) {
    if (error.status !== 404) return said(error);
    toast("That conversation is not there any more.", "warn");
    list.remove(id);
    fresh();
  }
}

/** Shows an empty chat. */
function fresh(isNew = true) {
  if (isNew && location.search) history.pushState(null, "", location.pathname);
  thread.leave();
  settings.set({});
  named(null);
  showSide(false);
  composer.focus();
}

function named(conversation) {
  const title = conversation ? titleOf(conversation) : "New chat";
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
    const metadata = { ...conversation.metadata, title: title.trim().slice(0, 200) };
    Object.assign(conversation, await api("POST", `v1/conversations/${conversation.id}`, { metadata }));
    list.put(conversation);
    named(conversation);
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
  fresh();
  others.postMessage({ erased: id });
  toast("Erased.");
}

/** What another tab of this browser has done. */
function heard({ changed, listed, erased }) {
  if (changed && changed === thread.conversation?.id) look();
  if (listed) {
    list.put(listed);
    if (listed.id === thread.conversation?.id) named(Object.assign(thread.conversation, listed));
  }
  if (erased) {
    list.remove(erased);
    if (erased === thread.conversation?.id) fresh();
  }
}

/** Looks whether the conversation has grown elsewhere. */
function look() {
  thread.refresh().catch((error) => {
    if (error.status === 404) fresh();
  });
}

/** Says in one line how the connection is. */
function showLink(state, why = "") {
  clearTimeout(linkTimer);
  const line = at("connection");
  if (state === null || (state === "back" && !wasLost)) {
    wasLost = false;
    line.hidden = true;
    return;
  }
  wasLost = state !== "back";
  line.hidden = false;
  line.className = `line ${state === "back" ? "good" : "warn"}`;
  line.textContent = state === "unsent" && why ? `${why} Your message is kept here; trying again…` : LINKS[state];
  if (state === "back") linkTimer = setTimeout(() => (line.hidden = true), BACK_MS);
}

function showSide(isOpen) {
  document.body.classList.toggle("side-open", isOpen);
  at("shade").hidden = !isOpen;
  at("side-open").setAttribute("aria-expanded", String(isOpen));
}

function emptyThread() {
  const tries = TRIES.map((text) => {
    const button = make("button", { type: "button" }, text);
    button.addEventListener("click", () => composer.restore(text));
    return button;
  });
  return make(
    "div",
    { class: "empty" },
    make("h2", {}, "What would you like to know?"),
    make("p", { class: "hint" }, "Conversations are kept by this server, and go on even if you close the page in the middle of an answer."),
    make("div", { class: "choices" }, ...tries),
  );
}

function said(error) {
  toast(error.message, "bad");
}
