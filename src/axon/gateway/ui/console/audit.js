// The audit trail: who changed what, when, and what it was before and after. Filtered and paged by the server.

import { make, toast } from "../common/dialog.js";
import { commands } from "./commands.js";
import { choice, filterBox } from "./filters.js";
import { link, moment, none } from "./format.js";
import { table, terminal } from "./table.js";

const KEY_ID = /^([a-z0-9]{8})( .*)?$/;
const KINDS = [["", "everything"], ...["tenant", "plan", "key", "price", "model", "version", "deployment", "alias", "adapter", "worker"].map((each) => [each, each === "alias" ? "aliases" : `${each}s`])];
const MOST_FIELDS = 8;

export async function open(visit) {
  let again = () => {};
  let rows = [];
  let asked = "";
  const kind = choice(visit, "kind", "Of", KINDS, () => anew());
  const text = filterBox(visit, "text", "With this in name, actor or record", () => anew());
  const nothing = make("p");
  const changes = changeTable(nothing);
  const older = make("button", { type: "button", hidden: true }, "Older ones");
  const command = terminal();
  visit.show("Audit trail", "Every change that an administrator, the command line or control made. Nothing is ever removed from it.",
    make("div", { class: "row" }, text.element, kind.element), changes.element, make("p", {}, older), command.element);

  const query = () => new URLSearchParams({ limit: "50", ...(kind.value() ? { kind: kind.value() } : {}), ...(text.value() ? { text: text.value() } : {}) }).toString();
  const read = (after) => visit.get(`v1/admin/audit?${asked}${after ? `&after=${encodeURIComponent(after)}` : ""}`);
  const show = () => {
    if (!rows.length) nothing.replaceChildren(...whyEmpty(Boolean(kind.value() || text.value())));
    changes.update(rows);
    command.set(commands.audit({ kind: kind.value(), text: text.value() }));
  };
  const look = async () => {
    const of = query();
    if (of !== asked) rows = [];
    asked = of;
    const page = await read("");
    if (of !== asked) return; // another filter was set meanwhile
    const isFirst = !rows.length;
    const known = new Set(rows.map((each) => each.id));
    const fresh = page.data.filter((each) => !known.has(each.id));
    // More than a page came between two looks: those below would have a gap above them.
    const hasGap = !isFirst && page.has_more && fresh.length === page.data.length;
    rows = hasGap ? page.data : [...fresh, ...rows];
    if (isFirst || hasGap) older.hidden = !page.has_more;
    show();
  };
  const anew = () => again();
  older.addEventListener("click", async () => {
    const of = asked;
    try {
      const page = await read(rows.at(-1)?.id);
      if (of !== asked) return;
      rows = [...rows, ...page.data];
      older.hidden = !page.has_more;
      show();
    } catch (error) {
      toast(error.message, "bad");
    }
  });
  again = await visit.poll(look, 5000);
}

/** What to do where no change is shown. */
function whyEmpty(isFiltered) {
  return isFiltered
    ? ["No change matches. ", link("Show all changes", "audit"), ", or look for the name, the actor or a value of the record."]
    : ["Nothing has been changed since this trail began. Make a ", link("tenant", "tenants"), ", a ", link("plan", "plans"), " or a ", link("key", "keys"), ": who did it and what it was will be here."];
}

function changeTable(nothing) {
  return table({
    caption: "Changes",
    key: (row) => row.id,
    perPage: 10_000,
    columns: [
      { head: "When", cell: (row) => moment(row.at) },
      { head: "Who", kind: "wrap", cell: who },
      { head: "Did", cell: (row) => `${row.action} ${row.kind}` },
      { head: "What", kind: "wrap", cell: what },
      { head: "Fields", kind: "wide", cell: fields },
    ],
    empty: nothing,
  });
}

function who({ actor }) {
  const [, key, person] = KEY_ID.exec(actor) || [];
  return key ? [link(key, "keys", { text: key, which: "all" }), person || ""] : actor;
}

/** The record's name, with a way to it where it has a view. */
function what({ kind, name, before, after }) {
  if (kind === "deployment") return link(name, "models", name);
  if (kind === "tenant") return link(name, "tenants", name);
  if (kind === "plan") return link(name, "plans", { text: name });
  if (kind === "worker") return link(name, "fleet");
  if (kind !== "key") return link(name, "models");
  const tenant = (after || before)?.tenant;
  return [link(name, "keys", { text: name, which: "all" }), ...(tenant ? [" of ", link(tenant, "tenants", tenant)] : [])];
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
  const isSaid = ({ path, before: old, after: new_ }) => path !== "revision" && (written(old) !== none || written(new_) !== none);
  const found = differences(before || {}, after || {}).filter(isSaid);
  const change = (each) => (!before ? written(each.after) : !after ? written(each.before) : `${written(each.before)} → ${written(each.after)}`);
  const shown = found.slice(0, MOST_FIELDS).flatMap((each) => [make("span", { class: "fact" }, make("span", { class: "hint" }, `${each.path}: `), change(each)), " "]);
  return found.length > MOST_FIELDS ? [...shown, make("span", { class: "hint" }, `${found.length - MOST_FIELDS} more`)] : shown;
}

function written(value) {
  const isNothing = value === undefined || value === null || value === "" || (typeof value === "object" && !Object.keys(value).length);
  const text = isNothing ? none : typeof value === "string" ? value : JSON.stringify(value);
  return text.length > 160 ? `${text.slice(0, 160)}…` : text;
}
