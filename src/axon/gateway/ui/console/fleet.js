// The fleet: workers with a button that drains them, processes, and what control runs and why.

import { make } from "../common/dialog.js";
import { ask, change } from "./action.js";
import { commands } from "./commands.js";
import { link, moment, none, percent, rate, span, state, to, whole } from "./format.js";
import { Looks, workerRate } from "./rates.js";
import { below, facts, refill, section, table } from "./table.js";

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
    refill(head, facts([
      ["Gateway that answers", [`${look.gateway.name}, Axon ${look.gateway.version}, up `, link(span(look.gateway.up_s), "logs", { text: "process.ready" })]],
      ["Gateways", link(whole(look.num_gateways), "logs", { text: "process.ready" })],
      ["Workers", [below(whole(look.num_workers), () => workers.element), ", listed below"]],
    ]), ...notes(look.workers));
    workers.update(look.workers.map((row) => ({ ...row, isOneOfMany: look.workers.some((each) => areTwins(each, row)) })));
  }, 2000);
  await visit.poll(async () => drawControl(control, await visit.get("v1/admin/fleet", { orNull: true })), 5000);
  await visit.poll(async () => processes.update((await visit.get("v1/admin/processes")).data), 20_000);
}

/** Whether two workers of one model have one name. One process has a worker for each of its models, all of its name: their jobs
 * are kept apart by the model. */
function areTwins(one, other) {
  return one.name === other.name && one.model === other.model && one.incarnation !== other.incarnation;
}

/** What whoever looks at the workers should know of them first. */
function notes(workers) {
  const namesOf = (found) => [...new Set(found.map((each) => each.name))].join(", ");
  const twins = workers.filter((one) => workers.some((other) => areTwins(one, other)));
  const alike = workers.filter((one) => one.can_drain && workers.some((other) => other.can_drain && other.name === one.name && other.model !== one.model));
  const said = [];
  if (twins.length) said.push(make("p", { class: "notice warn" }, `More than one worker of a model is called ${namesOf(twins)}: jobs meant for one may go to the other, and an order to drain reaches each of them. Give each a name of its own (worker.name), or wait a minute if one has just taken the place of another.`));
  if (alike.length) said.push(make("p", { class: "hint" }, `Workers of more than one model are called ${namesOf(alike)}: an order to drain reaches each of them.`));
  if (workers.some((each) => !each.can_drain)) said.push(make("p", { class: "hint" }, "Workers that are a part of axon serve cannot be drained one by one: stop that process as a whole, and what runs is taken up when it starts again. Workers that you start with axon worker have a button here."));
  return said;
}

function workerTable(looks, again) {
  return table({
    caption: "Workers",
    key: (row) => `${row.name}/${row.incarnation}/${row.version}`,
    columns: [
      { head: "Worker", cell: (row) => [row.name, row.isOneOfMany ? make("span", { class: "hint" }, ` run ${row.incarnation.slice(-6)}`) : ""], sort: (row) => row.name },
      { head: "Model", cell: (row) => link(row.model, "models", row.model), sort: (row) => row.model },
      { head: "Version", cell: (row) => row.version, sort: (row) => row.version },
      { head: "Pool", cell: (row) => row.pool || none, sort: (row) => row.pool },
      { head: "Zone", cell: (row) => row.zone || none, sort: (row) => row.zone },
      { head: "State", cell: (row) => state(row.draining ? "draining" : row.age_s > 10 ? "silent" : "ready"), sort: (row) => Number(row.draining) },
      { head: "Running", kind: "number", cell: (row) => link(`${row.running} / ${row.slots}`, "streams"), sort: (row) => row.running },
      { head: "Tokens/s", kind: "number", cell: (row) => link(rate(looks.over((before, after) => workerRate(before, after, row))), "usage", { by: "model" }), sort: (row) => row.answer_tokens },
      { head: "KV", kind: "number", cell: (row) => (row.kv_use === null ? none : link(percent(row.kv_use), "models", row.model)), sort: (row) => row.kv_use },
      { head: "Seen", kind: "number", cell: (row) => link(`${Math.round(row.age_s)} s`, "logs", { text: row.name }), sort: (row) => row.age_s },
      { head: "What can be done", kind: "actions", cell: (row, now) => (row.draining || !row.can_drain ? "" : button(row, now, again)) },
    ],
    empty: ["No worker has announced itself. Start one with ", make("code", {}, "axon worker"), ", or look at ", link("what control says", "logs", { text: "worker" }), "."],
  });
}

function button(row, now, again) {
  const open = make("button", { type: "button", class: "small", "aria-label": `Drain ${row.name}` }, "Drain");
  open.addEventListener("click", async () => {
    const done = await ask({
      title: `Drain ${row.name}`,
      says: () => `The worker takes no more jobs, hands over the ${now().running} that run, and its process ends. Whoever started it may start another one. No answer is lost.`,
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
    key: (row) => `${row.name}/${row.host}/${row.pid}`,
    columns: [
      { head: "Process", cell: (row) => row.name, sort: (row) => row.name },
      { head: "Role", cell: (row) => row.role, sort: (row) => row.role },
      { head: "Host", cell: (row) => row.host, sort: (row) => row.host },
      { head: "Pid", kind: "number", cell: (row) => (row.pid ? link(String(row.pid), "logs", { text: row.name }) : none), sort: (row) => row.pid },
      { head: "Model", cell: (row) => (row.model ? link(row.model, "models", row.model) : none), sort: (row) => row.model },
    ],
    empty: "No process answers the roll call: those that hang do not. Look again in a moment.",
  });
}

function drawControl(place, found) {
  if (found === null) {
    refill(place, make("div", { class: "empty" }, "No control with a launcher leads, so you start workers yourself. ",
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
      { head: "Restarts", kind: "number", cell: (row) => link(whole(row.restarts), "logs", { text: row.id }) },
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
  refill(
    place,
    facts([["Leader", [`${found.leader}, term `, link(whole(found.term), "logs", { text: "control" }), ", reported ", link(`${Math.round(found.age_s)} s`, "logs", { text: "control" }), " ago"]], ["Launcher", found.launcher], found.held && ["Held", found.held], found.problem && ["Problem", found.problem]]),
    replicas.element, make("h3", {}, "Last decisions"), decisions.element);
}
