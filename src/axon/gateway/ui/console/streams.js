// Streams that are written now and turns that wait, live.

import { make } from "../common/dialog.js";
import { link, none, short, span, to, whole } from "./format.js";
import { section, table, tile } from "./table.js";
import { filterBox } from "./filters.js";

export async function open(visit) {
  const tiles = { streams: tile({ label: "Streams of this gateway", below: () => streams.element }), sockets: tile({ label: "WebSockets", href: to("logs", { text: "socket" }) }), waiting: tile({ label: "Turns that wait, fleet", below: () => queues.element }), oldest: tile({ label: "Oldest stream", below: () => streams.element }) };
  const tenant = filterBox(visit, "tenant", "Tenant", () => again());
  const key = filterBox(visit, "key", "Key", () => again());
  const streams = streamTable();
  const queues = queueTable();
  const hint = make("p", { class: "hint" });
  let again = () => {};
  visit.show("Streams & queues", "What is being answered, and what waits for a worker.",
    make("div", { class: "tiles" }, ...Object.values(tiles).map((each) => each.element)),
    section("Streams", [tenant.element, key.element], streams.element, hint), section("Queues", [], queues.element));
  again = await visit.poll(async () => {
    const query = new URLSearchParams({ tenant: tenant.value(), key: key.value() });
    const [found, look] = await Promise.all([visit.get(`v1/admin/streams?${query}`), visit.get("v1/admin/overview")]);
    streams.update(found.data);
    queues.update(look.queues);
    tiles.streams.set(whole(found.num_streams), found.process);
    tiles.sockets.set(whole(look.gateway.sockets), "open here");
    tiles.waiting.set(whole(look.queues.reduce((all, each) => all + each.requests, 0)));
    tiles.oldest.set(found.data.length ? span(found.data[0].age_s) : none, found.data[0]?.id || "");
    hint.textContent = look.num_gateways > 1 ? `These are the streams of ${found.process}; ${look.num_gateways - 1} other gateways have their own.` : "";
  }, 1500);
}

function streamTable() {
  return table({
    caption: "Streams",
    key: (row) => `${row.id}/${row.key}`,
    columns: [
      { head: "Stream", cell: (row) => link(row.id, "requests", row.id), sort: (row) => row.id },
      { head: "Tenant", cell: (row) => link(row.tenant, "tenants", row.tenant), sort: (row) => row.tenant },
      { head: "Key", cell: (row) => (row.key ? link(row.key, "keys", { text: row.key, which: "all" }) : none), sort: (row) => row.key },
      { head: "Model", cell: (row) => link(row.model, "models", row.model), sort: (row) => row.model },
      { head: "Version", cell: (row) => row.version, sort: (row) => row.version },
      { head: "For", kind: "number", cell: (row) => link(span(row.age_s), "requests", row.id), sort: (row) => row.age_s },
    ],
    empty: "Nothing is streamed by this gateway now, or nothing that matches: clear the filter to see all. A stream appears here while its client reads it.",
  });
}

function queueTable() {
  return table({
    caption: "Queues",
    key: (row) => `${row.model}/${row.pool}`,
    columns: [
      { head: "Model", cell: (row) => link(row.model, "models", row.model), sort: (row) => row.model },
      { head: "Pool", cell: (row) => row.pool || "shared", sort: (row) => row.pool },
      { head: "Turns that wait", kind: "number", cell: (row) => link(whole(row.requests), "models", row.model), sort: (row) => row.requests },
      { head: "Tokens set aside", kind: "number", cell: (row) => link(short(row.tokens), "models", row.model), sort: (row) => row.tokens },
    ],
    empty: "No model is offered, so nothing can wait.",
  });
}
