// The audit trail: who changed what in the registry, and the administration that this process has logged.

import { make } from "../common/dialog.js";
import { link, moment } from "./format.js";
import { filterBox } from "./filters.js";
import { logTable } from "./logs.js";
import { section, table } from "./table.js";

export async function open(visit) {
  const text = filterBox(visit, "text", "Only rows with", () => [changes, events].forEach((each) => each.draw()));
  const wanted = () => text.value().toLowerCase();
  const changes = changeTable(wanted);
  const events = logTable(wanted);
  const older = make("button", { type: "button" }, "Older ones");
  let rows = [];
  visit.show("Audit trail", "Changes of the registry are numbered without gaps and kept for good. Changes of tenants, plans and keys are in the log.",
    make("div", { class: "row" }, text.element),
    section("Registry", [], changes.element, older), section("Administration, as this process has logged it", [], events.element));
  const read = (after) => visit.get(`v1/admin/changes?order=desc&limit=50${after ? `&after=${after}` : ""}`);
  const add = (page) => {
    const known = new Set(rows.map((each) => each.id));
    rows = [...rows, ...page.data.filter((each) => !known.has(each.id))].sort((one, other) => Number(other.id) - Number(one.id));
    changes.update(rows);
  };
  older.addEventListener("click", async () => {
    const page = await read(rows.at(-1)?.id);
    add(page);
    older.hidden = !page.has_more;
  });
  const first = await read("");
  older.hidden = !first.has_more;
  add(first);
  await visit.poll(async () => {
    add(await read(""));
    const found = (await visit.get("v1/admin/logs?limit=1000&level=info")).data.filter((line) => String(line.event).startsWith("admin."));
    events.update(found.reverse().map((line, index) => ({ line, text: JSON.stringify(line).toLowerCase(), key: `${line.ts}/${found.length - index}` })));
  }, 5000);
}

function changeTable(wanted) {
  return table({
    caption: "Changes of the registry",
    key: (row) => row.id,
    filter: (row) => JSON.stringify(row).toLowerCase().includes(wanted()),
    columns: [
      { head: "No.", kind: "number", cell: (row) => row.id },
      { head: "When", cell: (row) => moment(row.at) },
      { head: "Who", cell: (row) => (["control", "cli"].includes(row.actor) ? row.actor : link(row.actor, "keys", { text: row.actor })) },
      { head: "Did", cell: (row) => `${row.action} ${row.kind}` },
      { head: "What", cell: (row) => (row.kind === "deployment" ? link(row.name, "models", row.name) : row.name) },
      { head: "Fields", kind: "wide", cell: (row) => difference(row.before, row.after) },
    ],
    empty: "The registry has never been changed. Its models are those of the server's settings.",
  });
}

/** What differs between two records, a line for each field. */
export function difference(before, after) {
  const names = [...new Set([...Object.keys(before || {}), ...Object.keys(after || {})])].filter((name) => name !== "revision");
  const found = names.filter((name) => JSON.stringify(before?.[name]) !== JSON.stringify(after?.[name]));
  if (!before || !after) return make("span", { class: "hint" }, `${names.length} fields`);
  return found.flatMap((name) => [make("span", { class: "fact" }, make("span", { class: "hint" }, `${name}: `), make("span", { class: "value" }, `${written(before[name])} → ${written(after[name])}`)), " "]);
}

function written(value) {
  const text = value === undefined ? "–" : typeof value === "string" ? value : JSON.stringify(value);
  return text.length > 160 ? `${text.slice(0, 160)}…` : text;
}
