// Requests: the slowest of a while and what they are made of; one of them with its ledger as a bar and its steps.

import { make } from "../common/dialog.js";
import { stripe, waterfall } from "./chart.js";
import { commands } from "./commands.js";
import { choice } from "./filters.js";
import { link, moment, none, percent, seconds, span, state, to, whole } from "./format.js";
import { below, facts, refill, section, table, terminal, tile } from "./table.js";

const COLORS = { "session.load": 6, admission: 4, "job.queue_wait": 3, "model.start": 2, "server.restart": 5, claim: 7, attempt: 5, "engine.prefill": 1, "engine.decode": 0 };
const WORDS = {
  admission: "its key, body and limits were checked",
  "session.load": "its history was read and its prompt tokenised",
  "model.start": "its model was started: nobody had used it",
  "job.queue_wait": "it waited in the queue for a worker",
  "server.restart": "it was without a server, which was restarted",
  claim: "a worker claimed it",
  "engine.prefill": "its prompt was computed, up to the first token",
  "engine.decode": "its answer was written, token by token",
};
const NEXT = {
  "model.start": ["A model whose deployment keeps at least one worker stays loaded: look at ", "models"],
  "server.restart": ["Nothing of the answer was lost. Why the server ended is perhaps in ", "logs"],
  "job.queue_wait": ["More workers, or a larger share for its tenant, make the queue shorter: look at ", "fleet"],
  "engine.prefill": ["A long prompt, or many others in the batch. A prefix that is asked again is cached: look at ", "models"],
  "engine.decode": ["A long answer, or many streams at once on its worker: look at ", "fleet"],
};

export async function open(visit) {
  return visit.parts.length ? openOne(visit, visit.parts[0]) : openSlowest(visit);
}

async function openSlowest(visit) {
  let again = () => {};
  const since = choice(visit, "since", "Of the last", [["3600", "hour"], ["600", "10 minutes"], ["86400", "day"], ["604800", "week"]], () => again());
  const find = finder();
  const tiles = { count: tile({ label: "Turns looked at", below: () => turns.element }), half: tile({ label: "Median", below: () => turns.element }), tail: tile({ label: "p99", below: () => chart }) };
  const chart = make("div");
  const command = terminal();
  const turns = turnTable();
  visit.show("Requests", "The slowest turns, and the steps that their seconds went to. A request is found by its id too.",
    make("div", { class: "row" }, find, since.element),
    make("div", { class: "tiles" }, ...Object.values(tiles).map((each) => each.element)),
    section("What the slowest of a hundred are made of", [], chart),
    section("The slowest", [], turns.element, command.element));
  again = await visit.poll(async () => {
    const found = await visit.get(`v1/admin/traces?limit=100&since_s=${since.value()}`);
    tiles.count.set(whole(found.num_turns), found.num_turns ? `the oldest ended ${span(found.since_s)} ago` : "none has ended");
    tiles.half.set(found.num_turns ? seconds(found.p50_s) : none);
    tiles.tail.set(found.num_turns ? seconds(found.p99_s) : none);
    chart.replaceChildren(found.steps.length
      ? stripe({ title: "Seconds of the slowest of a hundred", format: seconds, parts: found.steps.map((each) => ({ name: each.name, value: each.tail_s, color: COLORS[each.name] ?? 5 })) })
      : make("div", { class: "empty" }, "No turn has ended in this time. Ask something, or look further back."));
    turns.update(found.turns);
    command.set(commands.slowest({ most: 100, since: Number(since.value()) }));
  }, 5000);
}

function finder() {
  const input = make("input", { type: "search", id: "find-request", placeholder: "chatcmpl-… or req_…", required: true, autocomplete: "off", spellcheck: false });
  const form = make("form", { class: "row", role: "search" }, make("label", { htmlFor: "find-request" }, "Find by id"), input, make("button", { type: "submit" }, "Find"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    location.hash = to("requests", input.value.trim());
  });
  return form;
}

function turnTable() {
  return table({
    caption: "The slowest turns",
    key: (row) => row.id,
    columns: [
      { head: "Turn", cell: (row) => link(row.id, "requests", row.id), sort: (row) => row.id },
      { head: "Took", kind: "number", cell: (row) => link(seconds(row.seconds), "requests", row.id), sort: (row) => row.seconds },
      { head: "Longest step", cell: (row) => `${row.longest} ${seconds(row.longest_s)}`, sort: (row) => row.longest },
      { head: "State", cell: (row) => state(row.state), sort: (row) => row.state },
      { head: "Attempts", kind: "number", cell: (row) => link(whole(row.attempts), "requests", row.id), sort: (row) => row.attempts },
      { head: "Model", cell: (row) => link(row.model, "models", row.model), sort: (row) => row.model },
      { head: "Tenant", cell: (row) => link(row.tenant, "tenants", row.tenant), sort: (row) => row.tenant },
      { head: "Request", kind: "wrap", cell: (row) => (row.request ? link(row.request, "logs", { text: row.request }) : none), sort: (row) => row.request },
    ],
    empty: "No turn has ended in this time.",
  });
}

async function openOne(visit, id) {
  const place = make("div");
  let isOver = false;
  visit.show(`Request ${id}`, "", place);
  await visit.poll(async () => {
    if (isOver) return;
    const found = await visit.get(`v1/admin/traces/${encodeURIComponent(id)}`, { orNull: true });
    if (found === null) {
      isOver = true;
      place.replaceChildren(make("div", { class: "empty" }, `No turn or request ${id} is known. A request's id is looked for among the last 2,000 turns that ended within a day. `, link("The slowest requests", "requests")));
      return;
    }
    isOver = found.state !== "opened";
    draw(place, found);
  }, 2000);
}

/** The leaves of the tree: the steps whose sum is the whole time. */
export function steps(spans) {
  const found = new Map();
  spans.forEach((span, index) => {
    const isLeaf = !(spans[index + 1]?.depth > span.depth);
    if (isLeaf && span.depth && !span.name.startsWith("gateway") && !span.name.startsWith("stream.") && span.name !== "job.publish") {
      found.set(span.name, (found.get(span.name) || 0) + span.seconds);
    }
  });
  return [...found].map(([name, value]) => ({ name, value }));
}

function draw(place, turn) {
  const parts = steps(turn.spans);
  const longest = parts.reduce((one, other) => (other.value > one.value ? other : one), { name: "", value: 0 });
  const ledger = turn.ledger;
  const told = spanTable(turn);
  const made = (text) => below(text, () => told);
  refill(
    place,
    make("p", { class: "why notice" }, why(turn, longest), ...next(longest)),
    stripe({ title: "Where its seconds went", format: seconds, parts: parts.map((each) => ({ ...each, color: COLORS[each.name] ?? 5 })) }),
    facts([
      ["State", state(turn.state)],
      ["Took", made(seconds(turn.seconds))],
      ["Began", moment(turn.began_at)],
      ["Tenant", link(turn.tenant, "tenants", turn.tenant)],
      ["Model", link(turn.model, "models", turn.model)],
      ["Version", turn.version ? link(turn.version, "models", turn.model) : none],
      ["Attempts", [made(whole(turn.attempts)), turn.attempts > 1 && !ledger?.restarts ? ", because a worker or engine was lost or handed it over" : ""]],
      ledger?.restarts ? ["Restarts of the server", made(often(ledger.restarts))] : null,
      ["Without a slot", link(seconds(turn.waited_s), "tenants", turn.tenant)],
      ["Held back to its tenant's rate", link(seconds(turn.paced_s), "tenants", turn.tenant)],
      ["Request", turn.request ? link(turn.request, "logs", { text: turn.request }) : none],
      ["Trace id", turn.trace_id || "it was not traced"],
    ]),
    ...(ledger ? [section("Ledger", [], ledgerOf(turn, made))] : []),
    section("Steps", [], waterfall({ title: "Steps of the turn, one under the other; the table below has them as text", format: seconds, color: (span) => COLORS[span.name] ?? 5, spans: turn.spans.map((each) => ({ ...each, start: each.start_s, note: each.worker })) }), told),
    terminal(commands.trace(turn.id)).element,
  );
}

export function why(turn, longest) {
  if (!turn.seconds || !longest.name) return "No worker has run it, so there is nothing to say of its time yet.";
  const share = percent(longest.value / turn.seconds);
  const restarts = turn.ledger?.restarts ? ` The server was restarted ${often(turn.ledger.restarts)} while it had this.` : "";
  const lost = turn.attempts > 1 && !restarts ? ` It took ${turn.attempts} attempts.` : restarts;
  const held = turn.paced_s > turn.seconds / 4 ? ` For ${seconds(turn.paced_s)} it was held back to its tenant's rate.` : "";
  return `It took ${seconds(turn.seconds)}. For ${seconds(longest.value)} of these (${share}), ${WORDS[longest.name] || `it was in ${longest.name}`}.${lost}${held} `;
}

function often(times) {
  return times > 1 ? `${times} times` : "once";
}

function next(longest) {
  const found = NEXT[longest.name];
  return found ? [found[0], link(`the ${found[1]}`, found[1]), "."] : [];
}

/** The ledger: tokens lead to the usage of which they are a part, seconds to the steps that they are made of. */
function ledgerOf({ ledger, tenant }, made) {
  const tokens = stripe({ title: "Tokens", format: whole, parts: [
    { name: "prompt computed", value: ledger.prefilled_tokens, color: 1 },
    { name: "prompt from the cache", value: ledger.cached_tokens, color: 2 },
    { name: "answer", value: ledger.emitted_tokens, color: 0 },
    { name: "computed again", value: ledger.replayed_tokens, color: 3 },
    { name: "thrown away", value: ledger.wasted_tokens, color: 5 },
  ] });
  return make("div", {}, tokens, facts([
    ["Billed", link(`${whole(ledger.billed_tokens)} tokens`, "usage", { tenant })],
    ledger.start_s ? ["Model start", made(seconds(ledger.start_s))] : null,
    ["Queue", [made(seconds(ledger.queue_s - ledger.start_s)), ", with the claim"]],
    ["Prefill", made(seconds(ledger.prefill_s))],
    ["Decode", made(seconds(ledger.decode_s))],
    ["Failover", [made(seconds(ledger.replay_s + ledger.restart_s)), ledger.restarts ? `, the server was restarted ${often(ledger.restarts)}` : ""]],
  ]));
}

/** A step is told by the log lines of its request, or of its turn where the request has no id. */
function spanTable({ spans, request, id }) {
  const told = (text) => link(text, "logs", { text: request || id });
  const found = table({
    caption: "Steps",
    key: (row) => row.index,
    columns: [
      { head: "Step", cell: (row) => `${"· ".repeat(row.depth)}${row.name}` },
      { head: "Began after", kind: "number", cell: (row) => told(seconds(Math.max(0, row.start_s))) },
      { head: "Took", kind: "number", cell: (row) => told(seconds(row.seconds)) },
      { head: "Worker", cell: (row) => row.worker || none },
      { head: "Why", cell: (row) => [row.cause, row.error].filter(Boolean).join(", ") || none },
    ],
    empty: "It has no steps.",
  });
  found.update(spans.map((each, index) => ({ ...each, index })));
  return found.element;
}
