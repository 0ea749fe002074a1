// The events of one answer, through reloads, lost networks and restarted servers. Touches no page.
//
// The server numbers the events and keeps them. So whatever happens to the connection, the reader asks for those past the
// last one that it has, and gets each exactly once.

import { ApiError, events } from "../common/api.js";

const ENDS = new Set(["response.completed", "response.failed", "response.incomplete"]);
const SILENT_MS = 45_000;
const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 5_000;
const NAMED_MS = 15_000;
const UNSEEN_MS = 2_000;

/**
 * Yields the parsed events of a response. `ask` is {body, headers} for a new one, or {id} for one that the server has;
 * `onLink` is told {lost: true, known: whether the server has the question, why: its words} and {lost: false}.
 */
export async function* answerEvents(ask, { signal, onLink = () => {} }) {
  let id = ask.id || "";
  let last = -1;
  let tries = 0;
  let why = "";
  for (;;) {
    const leave = linked(signal, () => id !== "");
    try {
      for await (const { data } of opened(ask, id, last, leave)) {
        const event = JSON.parse(data);
        leave.alive();
        if (event.type === "error") throw new ApiError(event.code === "stream_diverged" ? 400 : 503, event.code, event.message);
        if (tries) onLink({ lost: false });
        tries = 0;
        why = "";
        const isNew = event.sequence_number > last;
        if (!isNew && event.type !== "response.queued" && !ENDS.has(event.type)) continue;
        last = Math.max(last, event.sequence_number);
        id ||= event.response?.id || "";
        yield event;
        if (ENDS.has(event.type)) return;
      }
    } catch (error) {
      if (signal.aborted) return;
      // The server has lost the end that this reader has seen: the events are read again from the first one on.
      const isPast = error.status === 400 && id !== "" && last >= 0;
      if (isPast) last = -1;
      else if (!isPassing(error)) throw error;
      why = error.status > 0 ? error.message : "";
    } finally {
      leave.end();
    }
    if (leave.isUnseen) await seen(signal);
    if (signal.aborted) return;
    if (leave.isUnseen) continue;
    tries += 1;
    onLink({ lost: true, known: id !== "", why });
    await pause(Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** (tries - 1)), signal);
    if (signal.aborted) return;
  }
}

/** Resolves to the id of what is asked, "" where the server does not say it in time. */
export async function idOf(ask) {
  for await (const event of answerEvents(ask, { signal: AbortSignal.timeout(NAMED_MS) })) {
    if (event.response) return event.response.id;
  }
  return "";
}

/** Whether an event shows nothing: it says that the answer will come, and not even that it waits for something. */
export function isSilent(event) {
  return event.type === "response.created" || event.type === "response.in_progress" || (event.type === "response.queued" && !event.axon?.queue);
}

function opened(ask, id, last, leave) {
  const path = id ? `v1/responses/${id}?stream=true${last < 0 ? "" : `&starting_after=${last}`}` : "v1/responses";
  const asked = id ? {} : { body: ask.body, headers: ask.headers };
  return events(path, { ...asked, signal: leave.signal });
}

/** Whether it is worth to try again: the server was not reached, is busy, or is on its way down or up. */
function isPassing(error) {
  if (error.name === "AbortError") return true; // the connection was silent for too long, or the network went away
  if (!(error instanceof ApiError)) return false;
  return error.status === 0 || error.status >= 500 || (error.status === 409 && error.code === "conversation_locked");
}

/**
 * Returns a signal that also ends when the browser goes offline or nothing has come for a while, and, once the server has the
 * question, when nobody has seen the page for a while (`isUnseen`): browsers have six connections to a server for all tabs
 * together, and six that follow answers unseen would leave none to open a seventh, or to stop an answer.
 */
function linked(signal, isKnown) {
  const own = new AbortController();
  const abort = () => own.abort();
  let unseen = 0;
  const look = () => {
    clearTimeout(unseen);
    if (document.hidden) unseen = setTimeout(letGo, UNSEEN_MS);
  };
  const letGo = () => {
    if (!isKnown()) return look();
    made.isUnseen = true;
    abort();
  };
  let heard = performance.now();
  const timer = setInterval(() => performance.now() - heard > SILENT_MS && abort(), SILENT_MS / 3);
  signal.addEventListener("abort", abort);
  addEventListener("offline", abort);
  document.addEventListener("visibilitychange", look);
  look();
  const made = {
    signal: own.signal,
    isUnseen: false,
    alive() {
      heard = performance.now();
    },
    end() {
      clearInterval(timer);
      clearTimeout(unseen);
      document.removeEventListener("visibilitychange", look);
      signal.removeEventListener("abort", abort);
      removeEventListener("offline", abort);
    },
  };
  return made;
}

/** Waits until somebody sees the page, or the reader leaves. */
function seen(signal) {
  return new Promise((resolve) => {
    const look = () => {
      if (document.hidden && !signal.aborted) return;
      document.removeEventListener("visibilitychange", look);
      signal.removeEventListener("abort", look);
      resolve();
    };
    document.addEventListener("visibilitychange", look);
    signal.addEventListener("abort", look);
    look();
  });
}

/** Waits, but not longer than until the network is back or the reader leaves. */
function pause(ms, signal) {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      removeEventListener("online", done);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms * (0.8 + Math.random() * 0.4));
    addEventListener("online", done);
    signal.addEventListener("abort", done);
  });
}

/** Returns a random name for a request, so that sending it twice asks once. */
export function newName() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
