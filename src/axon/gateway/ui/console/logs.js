// The tail of the log of the process that answers, filtered by level and text.

import { make } from "../common/dialog.js";
import { choice, filterBox } from "./filters.js";
import { link, moment, state } from "./format.js";
import { table } from "./table.js";

const HEAD = new Set(["ts", "level", "event", "msg", "service"]);

export async function open(visit) {
  let again = () => {};
  let lines = [];
  let isPaused = false;
  const level = choice(visit, "level", "Level", [["debug", "debug and above"], ["info", "info and above"], ["warning", "warning and above"], ["error", "error"]], () => again());
  const text = filterBox(visit, "text", "Only lines with", () => rows.draw());
  const note = make("p", { class: "hint" });
  const pause = make("button", { type: "button", "aria-pressed": "false" }, "Hold still");
  pause.addEventListener("click", () => {
    isPaused = !isPaused;
    pause.setAttribute("aria-pressed", String(isPaused));
    if (!isPaused) again();
  });
  const nothing = make("p");
  const rows = logTable(() => text.value().toLowerCase(), nothing);
  visit.show("Logs", "", make("div", { class: "row" }, level.element, text.element, pause), note, rows.element);
  again = await visit.poll(async () => {
    if (isPaused) return;
    const found = await visit.get(`v1/admin/logs?limit=1000&level=${level.value()}`);
    lines = numbered(found.data).reverse();
    note.textContent = `The last ${lines.length} lines of ${found.process}, the newest first. ${found.note.split(". ")[0]}.`;
    if (!lines.length) nothing.replaceChildren(...whyEmpty(level.value()));
    rows.update(lines);
  }, 2000);
}

/** Lines with a key that stays when others are added, though two lines may be alike. */
function numbered(data) {
  const seen = new Map();
  return data.map((line) => {
    const text = JSON.stringify(line);
    const times = (seen.get(text) || 0) + 1;
    seen.set(text, times);
    return { line, text: text.toLowerCase(), key: `${text}#${times}` };
  });
}

/** What to do where no line is shown. */
function whyEmpty(level) {
  return level === "debug"
    ? ["This process has written no line yet. Send it a request, or look at what it writes: ", link("log.level", "settings", { text: "log.level" }), " in its settings."]
    : [`No line at the level ${level} or above, which is good news. `, link("Show all lines", "logs"), ", or look for a request in ", link("Requests", "requests"), "."];
}

export function logTable(wanted, nothing) {
  return table({
    caption: "Log lines",
    key: (row) => row.key,
    perPage: 200,
    filter: (row) => row.text.includes(wanted()),
    columns: [
      { head: "When", cell: ({ line }) => moment(line.ts) },
      { head: "Level", cell: ({ line }) => state(line.level) },
      { head: "Event", cell: ({ line }) => make("code", {}, line.event || line.msg || "") },
      { head: "Facts", kind: "wide", cell: ({ line }) => factsOf(line) },
    ],
    empty: nothing,
  });
}

function factsOf(line) {
  const said = line.event && line.msg ? [`${line.msg} `] : [];
  const found = Object.entries(line).filter(([name]) => !HEAD.has(name)).flatMap(([name, value]) => {
    const text = typeof value === "string" ? value : JSON.stringify(value);
    const shown = name === "request_id" || name === "turn" || name === "job" ? link(text, "requests", text) : name === "tenant" || name === "tenant_id" ? link(text, "tenants", text) : make("span", { class: "value" }, text);
    return [make("span", { class: "fact" }, make("span", { class: "hint" }, `${name}=`), shown), " "];
  });
  return [...said, ...found];
}
