// Usage and spend by day, model or tenant: charts, a table, and the same as CSV.

import { make } from "../common/dialog.js";
import { bars, sum } from "./chart.js";
import { choice, filterBox } from "./filters.js";
import { costs, link, none, short, whole } from "./format.js";
import { section, table, tile } from "./table.js";

const NAMES = ["answer", "prompt computed", "prompt from the cache"];
const DAY_MS = 86_400_000;

export async function open(visit) {
  let again = () => {};
  const tenant = filterBox(visit, "tenant", "Tenant", () => again());
  const by = choice(visit, "by", "By", [["day", "day"], ["model", "model"], ["tenant", "tenant"]], () => again());
  const days = choice(visit, "days", "Of the last", [["30", "30 days"], ["7", "7 days"], ["1", "day"], ["90", "90 days"], ["365", "year"]], () => again());
  const save = make("button", { type: "button" }, "Save as CSV");
  const tiles = { turns: tile({ label: "Turns", href: "#/requests" }), prompt: tile({ label: "Prompt tokens", below: () => rows.element }), output: tile({ label: "Answer tokens", below: () => rows.element }), cost: tile({ label: "Cost", href: "#/models" }), replicas: tile({ label: "Replica time", href: "#/fleet" }) };
  const chart = make("div");
  const rows = usageTable();
  let found = [];
  save.addEventListener("click", () => download(`axon-usage-by-${by.value()}.csv`, csv(found)));
  visit.show("Usage", "Tokens and money. Days are UTC; a turn counts on the day on which it ended.",
    make("div", { class: "row" }, tenant.element, by.element, days.element, make("span", { class: "spacer" }), save),
    make("div", { class: "tiles" }, ...Object.values(tiles).map((each) => each.element)), chart, section("Figures", [], rows.element));
  const ahead = Date.now() - 1000 * (await visit.get("v1/admin/overview")).at; // days are those of the server's clock
  again = await visit.poll(async () => {
    const span = spanOf(Number(days.value()), Date.now() - ahead);
    const query = new URLSearchParams({ ...span, by: by.value(), ...(tenant.value() ? { tenant: tenant.value() } : {}) });
    found = await visit.all(`v1/admin/usage?${query}`);
    drawTiles(tiles, found);
    chart.replaceChildren(drawChart(found, by.value(), span));
    rows.update(found);
    save.disabled = !found.length;
  }, 5000);
}

/** The days from and until, as the API wants them. */
export function spanOf(days, now) {
  const day = (at) => new Date(at).toISOString().slice(0, 10);
  return { since: day(now - (days - 1) * DAY_MS), until: day(now + DAY_MS) };
}

function drawTiles(tiles, found) {
  const total = (name) => sum(found.map((each) => each[name]));
  const prompt = total("prompt_tokens");
  const cached = total("cached_tokens");
  tiles.turns.set(whole(total("turns")));
  tiles.prompt.set(short(prompt), prompt ? `${Math.round((100 * cached) / prompt)} % from the cache` : "");
  tiles.output.set(short(total("output_tokens")));
  tiles.cost.set(costs(summed(found.flatMap((each) => each.costs))), "by the prices of the models");
  tiles.replicas.set(`${Math.round(sum(found.map((each) => (each.replicas?.cold_start_s || 0) + (each.replicas?.dedicated_s || 0))))} s`, "cold starts and dedicated pools");
}

/** Amounts of one currency together. Decimal text is summed in billionths, as the server does. */
export function summed(amounts) {
  const found = new Map();
  for (const { amount, currency } of amounts) found.set(currency, (found.get(currency) || 0n) + billionths(amount));
  return [...found].map(([currency, value]) => ({ currency, amount: decimal(value) }));
}

function billionths(text) {
  const [whole_, rest = ""] = text.split(".");
  return BigInt(whole_) * 1_000_000_000n + BigInt(rest.padEnd(9, "0").slice(0, 9));
}

function decimal(value) {
  return `${value / 1_000_000_000n}.${String(value % 1_000_000_000n).padStart(9, "0")}`;
}

function drawChart(found, by, { since, until }) {
  if (!found.length) return make("div", { class: "empty" }, "Nobody has used anything in this time. Usage appears here within seconds of a turn's end.");
  const groups = new Map();
  if (by === "day") for (let at = Date.parse(since); at < Date.parse(until); at += DAY_MS) groups.set(new Date(at).toISOString().slice(0, 10), []);
  for (const each of found) {
    const name = each[by] || none;
    groups.set(name, [...(groups.get(name) || []), each]);
  }
  const found_ = [...groups].map(([label, rows]) => ({
    label: by === "day" ? label.slice(5) : label,
    values: [sum(rows.map((each) => each.output_tokens)), sum(rows.map((each) => each.prompt_tokens - each.cached_tokens)), sum(rows.map((each) => each.cached_tokens))],
  }));
  return bars({ title: `Tokens by ${by}`, bars: found_.slice(0, 400), names: NAMES, unit: "tokens", format: short });
}

/** A sum that leads to its parts: a tenant's to its days, a day's and a model's to the tenant's models and days. */
function parts(row, text) {
  return link(text, "usage", { tenant: row.tenant, by: row.day ? "model" : "day" });
}

function usageTable() {
  return table({
    caption: "Usage",
    key: (row) => `${row.tenant}/${row.day}/${row.model}`,
    sorted: null,
    columns: [
      { head: "Tenant", cell: (row) => (row.tenant ? link(row.tenant, "tenants", row.tenant) : none), sort: (row) => row.tenant },
      { head: "Day", cell: (row) => row.day || none, sort: (row) => row.day },
      { head: "Model", cell: (row) => (row.model ? link(row.model, "models", row.model.split("@")[0]) : none), sort: (row) => row.model },
      { head: "Turns", kind: "number", cell: (row) => parts(row, whole(row.turns)), sort: (row) => row.turns },
      { head: "Prompt", kind: "number", cell: (row) => parts(row, whole(row.prompt_tokens)), sort: (row) => row.prompt_tokens },
      { head: "Cached", kind: "number", cell: (row) => parts(row, whole(row.cached_tokens)), sort: (row) => row.cached_tokens },
      { head: "Answer", kind: "number", cell: (row) => parts(row, whole(row.output_tokens)), sort: (row) => row.output_tokens },
      { head: "Cost", kind: "number", cell: (row) => (row.costs.length ? link(costs(row.costs), "models") : none), sort: (row) => Number(row.costs[0]?.amount || 0) },
    ],
    empty: "Nothing was used in this time. Clear the filter, or look further back.",
  });
}

/** The rows as CSV. A text that a spreadsheet would compute gets a quote in front. */
export function csv(rows) {
  const heads = ["tenant", "day", "model", "turns", "prompt_tokens", "cached_tokens", "output_tokens", "total_tokens", "costs"];
  const cell = (value) => {
    const text = Array.isArray(value) ? value.map((each) => `${each.amount} ${each.currency}`).join(" + ") : String(value ?? "");
    const safe = /^[\s\u0000]*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/.test(text) ? `'${text}` : text;
    return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  return [heads, ...rows.map((row) => heads.map((name) => row[name]))].map((line) => line.map(cell).join(",")).join("\r\n") + "\r\n";
}

function download(name, text) {
  const url = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  const anchor = make("a", { href: url, download: name });
  document.body.append(anchor);
  anchor.click();
  anchor.remove();
  URL.revokeObjectURL(url);
}
