// Alerts of the Alertmanager that the server is told of.

import { make } from "../common/dialog.js";
import { moment, state, to, whole } from "./format.js";
import { refill, section, table } from "./table.js";

export async function open(visit) {
  const rows = alertTable();
  const place = make("div");
  visit.show("Alerts", "What the configured Alertmanager has as active, the oldest first.", place);
  await visit.poll(async () => {
    const found = await visit.get("v1/admin/alerts", { orNull: true });
    if (found === null) {
      refill(place, make("div", { class: "empty" }, make("p", {}, "No Alertmanager is configured, so there are no alerts here. Rules for Prometheus and routes for Alertmanager are written by:"),
        make("pre", { tabIndex: 0 }, "axon monitoring ./monitoring"), make("p", {}, "Then set ", make("a", { href: to("settings", { text: "alerts.url" }) }, "alerts.url"), " to its address and start the server again.")));
      return;
    }
    rows.update(found.data.map((each, index) => ({ ...each, index })));
    if (!place.contains(rows.element)) place.replaceChildren(section(`${whole(found.data.length)} active`, [], rows.element));
  }, 10_000);
}

function alertTable() {
  return table({
    caption: "Active alerts",
    key: (row) => `${row.name}/${row.starts_at}/${row.index}`,
    columns: [
      { head: "Alert", cell: (row) => row.name, sort: (row) => row.name },
      { head: "State", cell: (row) => state(row.silenced ? "silenced" : row.inhibited ? "inhibited" : row.labels.severity === "page" ? "error" : "warning") },
      { head: "Since", cell: (row) => moment(row.starts_at), sort: (row) => row.starts_at },
      { head: "What", kind: "wide", cell: (row) => row.annotations.summary || row.annotations.description || "" },
      { head: "Labels", kind: "wide", cell: (row) => Object.entries(row.labels).filter(([name]) => name !== "alertname").map(([name, value]) => `${name}=${value}`).join(" ") },
      { head: "What to do", cell: (row) => row.annotations.runbook_url || row.annotations.runbook || "" },
    ],
    empty: "Nothing is wrong: the Alertmanager has no active alert.",
  });
}
