// The audit trail: who changed what in the registry, and the administration that this process has logged.

import { make } from "../common/dialog.js";
import { link, moment } from "./format.js";
import { filterBox } from "./filters.js";
import { logTable } from "./logs.js";
import { section, table } from "./table.js";

const KEY_ID = /^[a-z0-9]{8}$/;

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
      { head: "Who", cell: (row) => (KEY_ID.test(row.actor) ? link(row.actor, "keys", { text: row.actor, which: "all" }) : row.actor) },
      { head: "Did", cell: (row) => `${row.action} ${row.kind}` },
      { head: "What", kind: "wrap", cell: (row) => (row.kind === "deployment" ? link(row.name, "models", row.name) : row.name) },
      { head: "Fields", kind: "wide", cell: fields },
    ],
    empty: "The registry has never been changed. Its models are those of the server's settings.",
  });
}

/** What differs between two records: a pair for each leaf, by its path, such as rollout.state. */
export function differences(before, after, path = "") {
  if (JSON.stringify(before) === JSON.stringify(after)) return [];
  const isTree = (value) => value !== null && typeof value === "object";
  if (!isTree(before) || !isTree(after)) return [{ path, before, after }];
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return names.flatMap((name) => differences(before[name], after[name], path ? `${path}.${name}` : name));
}

function fields({ before, after }) {
  if (!before || !after) return make("span", { class: "hint" }, `${Object.keys(before || after || {}).length} fields`);
  const found = differences(before, after).filter(({ path }) => path !== "revision");
  return found.flatMap((each) => [make("span", { class: "fact" }, make("span", { class: "hint" }, `${each.path}: `), `${written(each.before)} → ${written(each.after)}`), " "]);
}

function written(value) {
  const text = value === undefined || value === null || value === "" ? "–" : typeof value === "string" ? value : JSON.stringify(value);
  return text.length > 160 ? `${text.slice(0, 160)}…` : text;
}
