// The fleet: workers with a button that drains them, processes, and what control runs and why.

import { make } from "../common/dialog.js";
import { ask, change } from "./action.js";
import { commands } from "./commands.js";
import { link, moment, none, percent, rate, span, state, to, whole } from "./format.js";
import { Looks, workerRate } from "./rates.js";
import { facts, section, table } from "./table.js";

export async function open(visit) {
  const looks = new Looks();
  let again = () => {};
  const workers = workerTable(looks, () => again());
  const processes = processTable();
  const control = make("div");
  const head = make("div");
  visit.show("Fleet", "Workers as they last announced themselves, the processes of this server or fleet, and what control runs.",
    head, section("Workers", [], workers.element), section("Processes", [link("Their logs", "logs")], processes.element), section("Control", [], control));
  again = await visit.poll(async () => {
    looks.add(await visit.get("v1/admin/overview"));
    const look = looks.last;
    head.replaceChildren(facts([
      ["Gateway that answers", `${look.gateway.name}, Axon ${look.gateway.version}, up ${span(look.gateway.up_s)}`],
      ["Gateways", whole(look.num_gateways)],
      ["Workers", whole(look.num_workers)],
    ]));
    workers.update(look.workers);
  }, 2000);
  await visit.poll(async () => drawControl(control, await visit.get("v1/admin/fleet", { orNull: true })), 5000);
  await visit.poll(async () => processes.update((await visit.get("v1/admin/processes")).data), 20_000);
}

function workerTable(looks, again) {
  return table({
    caption: "Workers",
    key: (row) => `${row.name}/${row.incarnation}`,
    columns: [
      { head: "Worker", cell: (row) => row.name, sort: (row) => row.name },
      { head: "Model", cell: (row) => link(row.model, "models", row.model), sort: (row) => row.model },
      { head: "Version", cell: (row) => row.version, sort: (row) => row.version },
      { head: "Pool", cell: (row) => row.pool || none, sort: (row) => row.pool },
      { head: "Zone", cell: (row) => row.zone || none, sort: (row) => row.zone },
      { head: "State", cell: (row) => state(row.draining ? "draining" : row.age_s > 10 ? "silent" : "ready"), sort: (row) => Number(row.draining) },
      { head: "Running", kind: "number", cell: (row) => link(`${row.running} / ${row.slots}`, "streams"), sort: (row) => row.running },
      { head: "Tokens/s", kind: "number", cell: (row) => rate(looks.over((before, after) => workerRate(before, after, row.name))), sort: (row) => row.answer_tokens },
      { head: "KV", kind: "number", cell: (row) => percent(row.kv_use), sort: (row) => row.kv_use },
      { head: "Seen", kind: "number", cell: (row) => `${Math.round(row.age_s)} s`, sort: (row) => row.age_s },
      { head: "What can be done", kind: "actions", cell: (row) => (row.draining ? "" : button(row, again)) },
    ],
    empty: ["No worker has announced itself. Start one with ", make("code", {}, "axon worker"), ", or look at ", link("what control says", "logs", { text: "worker" }), "."],
  });
}

function button(row, again) {
  const open = make("button", { type: "button", class: "small", "aria-label": `Drain ${row.name}` }, "Drain");
  open.addEventListener("click", async () => {
    const done = await ask({
      title: `Drain ${row.name}`,
      says: () => `The worker takes no more jobs, hands over the ${row.running} that run, and its process ends. Whoever started it may start another one. No answer is lost.`,
      command: () => commands.drainWorker(row.name),
      action: "Drain it",
      danger: true,
      run: () => change("POST", `v1/admin/workers/${encodeURIComponent(row.name)}/drain`, undefined, `${row.name} drains.`),
    });
    if (done) again();
  });
  return open;
}

function processTable() {
  return table({
    caption: "Processes",
    key: (row) => row.name,
    columns: [
      { head: "Process", cell: (row) => row.name, sort: (row) => row.name },
      { head: "Role", cell: (row) => row.role, sort: (row) => row.role },
      { head: "Host", cell: (row) => row.host, sort: (row) => row.host },
      { head: "Pid", kind: "number", cell: (row) => String(row.pid || none), sort: (row) => row.pid },
      { head: "Model", cell: (row) => (row.model ? link(row.model, "models", row.model) : none), sort: (row) => row.model },
    ],
    empty: "No process answers the roll call: those that hang do not. Look again in a moment.",
  });
}

function drawControl(place, found) {
  if (found === null) {
    place.replaceChildren(make("div", { class: "empty" }, "No control with a launcher leads, so you start workers yourself. ",
      "Set control.launcher to let it run them; ", make("a", { href: to("settings", { text: "control.launcher" }) }, "see the setting"), "."));
    return;
  }
  const replicas = table({
    caption: "Replicas",
    key: (row) => row.id,
    columns: [
      { head: "Replica", cell: (row) => row.id },
      { head: "Version", cell: (row) => row.version },
      { head: "State", cell: (row) => state(row.state) },
      { head: "Since", cell: (row) => moment(row.since) },
      { head: "Restarts", kind: "number", cell: (row) => whole(row.restarts) },
      { head: "Zone", cell: (row) => row.zone || none },
      { head: "Problem", cell: (row) => row.problem || none },
    ],
    empty: "Control runs no replica now.",
  });
  replicas.update(found.replicas);
  const decisions = table({
    caption: "Last decisions",
    key: (row) => `${row.at}/${row.replica}/${row.action}`,
    perPage: 20,
    columns: [
      { head: "When", cell: (row) => moment(row.at) },
      { head: "Did", cell: (row) => row.action },
      { head: "Replica", cell: (row) => row.replica },
      { head: "Why", cell: (row) => `${row.reason}${row.error ? ` (failed: ${row.error})` : ""}` },
    ],
    empty: "It has decided nothing yet.",
  });
  decisions.update(found.decisions);
  place.replaceChildren(
    facts([["Leader", `${found.leader}, term ${found.term}, reported ${Math.round(found.age_s)} s ago`], ["Launcher", found.launcher], found.held && ["Held", found.held], found.problem && ["Problem", found.problem]]),
    replicas.element, make("h3", {}, "Last decisions"), decisions.element);
}
