// The overview: the whole server in one look, each figure with a way to what it is made of.

import { make } from "../common/dialog.js";
import { spark, sum } from "./chart.js";
import { commands } from "./commands.js";
import { link, none, percent, rate, seconds, short, span, state, to, whole } from "./format.js";
import { answerTokens, latency, Looks, promptTokens, refusals, requests } from "./rates.js";
import { section, table, tile } from "./table.js";

const COUNTED = "All HTTP requests with its keys at this gateway, those of these pages among them. Nothing lists them one by one: Usage counts its turns.";

export async function open(visit) {
  const looks = new Looks();
  const tiles = {
    running: tile({ label: "Running", href: to("streams") }),
    waiting: tile({ label: "Waiting", href: to("streams") }),
    tokens: tile({ label: "Answer tokens a second", href: to("fleet") }),
    requests: tile({ label: "HTTP requests a second", below: () => tenants.element }),
    first: tile({ label: "First token, p50 / p99", href: to("requests") }),
    gap: tile({ label: "Between tokens, p50 / p99", href: to("requests") }),
    workers: tile({ label: "Workers", href: to("fleet") }),
    models: tile({ label: "Models ready", href: to("models") }),
    streams: tile({ label: "Streams here", href: to("streams") }),
    refused: tile({ label: "Refused a second", href: to("logs", { text: "rejected" }) }),
    memory: tile({ label: "Fullest KV memory", href: to("fleet") }),
    alerts: tile({ label: "Alerts", href: to("alerts") }),
  };
  const sparks = { tokens: make("span"), requests: make("span") };
  for (const name of Object.keys(sparks)) tiles[name].append(sparks[name]);
  const problems = make("div");
  const models = modelTable();
  const tenants = tenantTable();
  visit.show("Overview", "", problems,
    make("div", { class: "tiles" }, ...Object.values(tiles).map((each) => each.element)),
    section("Models", [link("All models", "models")], models.element),
    section("Tenants", [link("All tenants", "tenants")], tenants.element));

  await visit.poll(async () => {
    looks.add(await visit.get("v1/admin/overview"));
    drawFigures(looks, tiles);
    for (const [name, of] of [["tokens", answerTokens], ["requests", requests]]) {
      sparks[name].replaceChildren(spark(looks.series(of)));
    }
    const look = looks.last;
    problems.replaceChildren(...notes(look));
    models.update(look.models.map((model) => ({ ...model, running: sum(look.workers.filter((each) => each.model === model.name).map((each) => each.running)), waiting: sum(look.queues.filter((each) => each.model === model.name).map((each) => each.requests)) })));
    tenants.update(tenantRows(look));
  }, 2000);
  await visit.poll(async () => drawAlerts(tiles.alerts, await visit.get("v1/admin/alerts", { orNull: true })), 15_000);
}

function drawFigures(looks, tiles) {
  const look = looks.last;
  const slots = sum(look.workers.map((each) => each.slots));
  const running = sum(look.workers.map((each) => each.running));
  const waiting = sum(look.queues.map((each) => each.requests));
  const draining = look.workers.filter((each) => each.draining).length;
  const ready = look.models.filter((each) => each.state === "ready").length;
  const kv = look.workers.map((each) => each.kv_use).filter((each) => each !== null);
  tiles.running.set(whole(running), `of ${whole(slots)} slots`);
  tiles.waiting.set(whole(waiting), `${short(sum(look.queues.map((each) => each.tokens)))} tokens set aside`, waiting ? "warn" : "");
  tiles.tokens.set(rate(looks.over(answerTokens)), `${rate(looks.over(promptTokens))} prompt tokens`);
  tiles.requests.set(rate(looks.over(requests)), `${whole(sum(Object.values(look.gateway.requests)))} since the start, the pages' own among them`);
  for (const [name, field] of [["first", "ttft_counts"], ["gap", "gap_counts"]]) {
    const found = [0.5, 0.99].map((share) => looks.over((before, after) => latency(before, after, field, share), 40));
    tiles[name].set(found.every((each) => each === null) ? none : found.map((each) => seconds(each).replace(" ", "\u00a0")).join(" / "), "of the last minute");
  }
  tiles.workers.set(whole(look.num_workers), draining ? `${draining} drain` : `${zones(look)}`, draining ? "warn" : "");
  tiles.models.set(`${ready} of ${look.num_models}`, "", ready < look.models.filter((each) => each.state !== "cold").length ? "warn" : "");
  tiles.streams.set(whole(look.gateway.streams), `of ${look.gateway.name}, up ${span(look.gateway.up_s)}`);
  tiles.refused.set(rate(looks.over(refusals)), `${whole(look.gateway.rejected)} since the start`);
  tiles.memory.set(kv.length ? percent(Math.max(...kv)) : none, "of its blocks");
}

function zones(look) {
  const found = new Set(look.workers.map((each) => each.zone).filter(Boolean));
  return found.size ? `in ${found.size} zone${found.size > 1 ? "s" : ""}` : `${look.num_gateways} gateway${look.num_gateways > 1 ? "s" : ""}`;
}

function drawAlerts(place, found) {
  if (found === null) return place.set(none, "no Alertmanager is set");
  const loud = found.data.filter((each) => !each.silenced && !each.inhibited).length;
  place.set(whole(loud), `${found.data.length - loud} silenced`, loud ? "bad" : "");
}

function notes(look) {
  const found = look.problems.map((each) => `Not read: ${each}`);
  if (look.control?.problem) found.push(`Control: ${look.control.problem}`);
  return found.map((each) => make("p", { class: "notice warn" }, each));
}

function modelTable() {
  return table({
    caption: "Models",
    key: (row) => row.name,
    columns: [
      { head: "Model", cell: (row) => link(row.name, "models", row.name), sort: (row) => row.name },
      { head: "State", cell: (row) => state(row.state), sort: (row) => row.state },
      { head: "Workers", kind: "number", cell: (row) => link(row.wanted === null ? whole(row.workers) : `${row.workers} of ${row.wanted}`, "fleet"), sort: (row) => row.workers },
      { head: "Running", kind: "number", cell: (row) => link(whole(row.running), "streams"), sort: (row) => row.running },
      { head: "Waiting", kind: "number", cell: (row) => link(whole(row.waiting), "streams"), sort: (row) => row.waiting },
      { head: "Versions", cell: (row) => row.versions.map((each) => `${each.version}${each.is_stable ? " stable" : ""} (${each.workers})`).join(", ") || none },
    ],
    empty: ["This server offers no model yet. Register one where its files are: ", make("code", {}, commands.addModel({ name: "NAME", source: "SOURCE", deploy: true }))],
  });
}

function tenantRows(look) {
  const rows = new Map();
  const of = (name) => rows.get(name) || rows.set(name, { tenant: name, running: 0, requests: 0, rejected: 0 }).get(name);
  for (const worker of look.workers) for (const each of worker.tenants) of(each.tenant).running += each.running;
  for (const each of look.tenants) Object.assign(of(each.tenant), { requests: each.requests, rejected: each.rejected });
  return [...rows.values()].sort((one, other) => other.running - one.running || other.requests - one.requests);
}

function tenantTable() {
  return table({
    caption: "Tenants that are busy",
    key: (row) => row.tenant,
    perPage: 10,
    columns: [
      { head: "Tenant", cell: (row) => link(row.tenant, "tenants", row.tenant), sort: (row) => row.tenant },
      { head: "Running", kind: "number", cell: (row) => link(whole(row.running), "streams", { tenant: row.tenant }), sort: (row) => row.running },
      { head: "HTTP requests here", kind: "number", cell: (row) => make("a", { href: to("usage", { tenant: row.tenant }), title: COUNTED }, whole(row.requests)), sort: (row) => row.requests },
      { head: "Refused here", kind: "number", cell: (row) => link(whole(row.rejected), "logs", { text: "rejected" }), sort: (row) => row.rejected },
    ],
    empty: ["Nobody has asked since this gateway started. ", link("Make a tenant", "tenants"), " and a key, and send a request."],
  });
}
