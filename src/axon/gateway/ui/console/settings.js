// The settings that hold in the process that answers, with where each comes from.

import { make } from "../common/dialog.js";
import { choice, filterBox } from "./filters.js";
import { breakable, none } from "./format.js";
import { table } from "./table.js";

export async function open(visit) {
  const text = filterBox(visit, "text", "Name, value or meaning", () => rows.draw());
  const which = choice(visit, "which", "Show", [["all", "all"], ["set", "only what somebody has set"]], () => rows.draw());
  const wanted = (row) => (which.value() === "all" || row.origin !== "default") && row.words.includes(text.value().toLowerCase());
  const rows = settingTable(wanted);
  const hint = make("p", { class: "hint" });
  visit.show("Settings", "They are read when a process starts: change them there, and start it again. Secrets are hidden.", make("div", { class: "row" }, text.element, which.element), hint, rows.element);
  const found = await visit.get("v1/admin/settings");
  hint.textContent = `Those of ${found.process}.`;
  rows.update(found.data.map((each) => ({ ...each, words: `${each.id} ${each.value} ${each.meaning}`.toLowerCase() })));
}

function settingTable(wanted) {
  return table({
    caption: "Settings in effect",
    key: (row) => row.id,
    filter: wanted,
    perPage: 500,
    columns: [
      { head: "Setting", cell: (row) => make("code", {}, row.id), sort: (row) => row.id },
      { head: "Value", kind: "wrap", cell: (row) => make("code", {}, ...(row.value === "" || row.value === null ? [none] : breakable(String(row.value)))), sort: (row) => String(row.value) },
      { head: "From", kind: "wrap", cell: (row) => (row.origin === "default" ? make("span", { class: "hint" }, "default") : make("strong", {}, ...breakable(row.origin))), sort: (row) => row.origin },
      { head: "Meaning", kind: "wide", cell: (row) => [row.meaning.replaceAll("``", ""), " ", make("span", { class: "hint" }, ...breakable(row.variable))] },
    ],
    empty: "This process tells of no settings.",
  });
}
