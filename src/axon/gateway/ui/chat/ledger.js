// "Why was this slow?": an answer's ledger in words and bars. Knows no stream.

import { api } from "../common/api.js";
import { make, shown, toast } from "../common/dialog.js";

const PARTS = [
  ["start_s", "Model start", "waiting for the model to be loaded: nobody had used it"],
  ["line_s", "Queue", "waiting for a worker to take it"],
  ["prefill_s", "Prefill", "reading the prompt, until the first word"],
  ["decode_s", "Decode", "writing the answer"],
  ["failover_s", "Failover", "until it went on after a worker or the server was lost"],
];

/** Opens the ledger of a response. */
export async function showLedger(turn) {
  let ledger = turn.axon?.ledger;
  try {
    if (!ledger) {
      const found = await api("GET", `v1/responses/${turn.id}`, undefined, { headers: { "x-axon-ledger": "true" } });
      ledger = found.axon?.ledger;
    }
  } catch (error) {
    return toast(`The ledger could not be read: ${error.message}`, "bad");
  }
  const body = ledger ? bodyOf(ledger) : [make("p", {}, "This answer has no ledger: no worker has run it to its end.")];
  return shown({ title: "Why was this slow?", body });
}

function bodyOf(told) {
  const start_s = told.start_s || 0;
  const ledger = { ...told, start_s, line_s: told.queue_s - start_s, failover_s: told.replay_s + (told.restart_s || 0) };
  const whole = PARTS.reduce((sum, [name]) => sum + ledger[name], 0);
  const parts = PARTS.filter(([name]) => name !== "start_s" || start_s > 0);
  const rows = parts.map(([name, title, words]) => {
    const bar = make("meter", { min: 0, max: Math.max(whole, 1e-9), value: ledger[name] });
    bar.setAttribute("aria-label", `${title}: ${seconds(ledger[name])}`);
    return make(
      "tr",
      {},
      make("th", { scope: "row" }, title, make("div", { class: "hint" }, words)),
      make("td", {}, bar),
      make("td", { class: "number" }, seconds(ledger[name])),
    );
  });
  const notes = notesOf(ledger).map((text) => make("li", {}, text));
  return [
    make("p", {}, `${verdict(ledger, whole)} It took ${seconds(whole)} in all.`),
    make("table", { class: "ledger" }, make("tbody", {}, ...rows)),
    make("ul", { class: "ledger-notes" }, ...notes),
  ];
}

function verdict(ledger, whole) {
  if (whole <= 0) return "No time was measured.";
  const [name, title] = PARTS.reduce((most, part) => (ledger[part[0]] > ledger[most[0]] ? part : most));
  return `Most of the time (${Math.round((100 * ledger[name]) / whole)} %) was ${title.toLowerCase()}.`;
}

function notesOf(ledger) {
  const notes = [
    `Prompt: ${ledger.queued_tokens} tokens, of which ${ledger.cached_tokens} were found in the cache and ${ledger.prefilled_tokens} computed.`,
    `Answer: ${ledger.emitted_tokens} tokens${ledger.decode_s > 0 ? `, ${(ledger.emitted_tokens / ledger.decode_s).toFixed(1)} a second` : ""}.`,
  ];
  if (ledger.restarts) {
    const often = ledger.restarts > 1 ? `${ledger.restarts} times` : "once";
    notes.push(`Failover: the server was restarted ${often} while it had this; taking it up again took ${seconds(ledger.failover_s)}.`);
  } else if (ledger.attempts > 1) {
    notes.push(`Failover: ${ledger.attempts} workers had it; ${ledger.replayed_tokens} tokens were computed again.`);
  } else notes.push("Failover: none, one worker had it from beginning to end.");
  if (ledger.waited_s > 0) notes.push(`It was without a place in the engine for ${seconds(ledger.waited_s)}.`);
  if (ledger.paced_s > 0) notes.push(`It was held back to your tenant's rate for ${seconds(ledger.paced_s)}.`);
  if (ledger.wasted_tokens) notes.push(`${ledger.wasted_tokens} tokens were computed and are in no answer.`);
  notes.push(`Billed: ${ledger.billed_tokens} tokens${ledger.cost ? `, ${ledger.cost.amount} ${ledger.cost.currency}` : ""}.`);
  return notes;
}

const seconds = (value) => (value < 1 ? `${Math.round(value * 1000)} ms` : `${value.toFixed(1)} s`);
