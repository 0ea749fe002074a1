// One deployment: its versions and workers, and its rollout with the canary's figures and its steps by hand.

import { make } from "../common/dialog.js";
import { ask, change } from "./action.js";
import { stripe } from "./chart.js";
import { commands, takesReason } from "./commands.js";
import { link, moment, none, percent, seconds, span, state, whole } from "./format.js";
import { below, facts, section, table } from "./table.js";

const STEPS = {
  pause: ["Pause", "Keeps the present share. The comparison goes on, and can still abort."],
  resume: ["Resume", "Goes on after the pause; the time of the present step begins anew."],
  step: ["Next step", "Goes to the next share now, without waiting for the bake time."],
  promote: ["Promote", "Makes the new version the stable one now; the old version drains."],
  abort: ["Abort", "Takes the rollout back because the version is broken: its sessions are moved to the stable version, and told."],
  rollback: ["Roll back", "Begins new sessions on the old version again, within a second; sessions of the new version stay on it."],
};

/** What can be done with a rollout in this state. */
export function possible(word) {
  return { waiting: ["abort", "rollback"], running: ["pause", "step", "promote", "abort", "rollback"], paused: ["resume", "promote", "abort", "rollback"], promoted: ["rollback"] }[word] || [];
}

export async function openDeployment(visit, id) {
  const path = `v1/admin/deployments/${encodeURIComponent(id)}`;
  const place = make("div");
  const rollout = make("div");
  let again = () => {};
  visit.show(`Deployment ${id}`, "", place, rollout);
  const renew = () => again();
  again = await visit.poll(async () => {
    const [look, deployment] = await Promise.all([visit.get("v1/admin/overview"), visit.get(path, { orNull: true })]);
    const model = look.models.find((each) => each.name === id);
    if (!deployment && !model) {
      place.replaceChildren(make("div", { class: "empty" }, `There is no deployment or model ${id}. `, link("All models", "models")));
      rollout.replaceChildren();
      return;
    }
    keep(place, drawn(visit, id, model, deployment, look, renew));
    if (!deployment) {
      keep(rollout, [make("div", { class: "empty" }, "This model comes from the server's settings, so it has one version and no rollouts. Register it to roll out others: ", make("code", {}, commands.addModel({ name: "NAME", source: "SOURCE", deploy: true })))]);
      return;
    }
    const versions = await visit.all(`v1/admin/models/${encodeURIComponent(deployment.model)}/versions`);
    const [now, figures] = deployment.rollout ? await Promise.all([visit.get(`${path}/rollout`), visit.get(`${path}/rollout/figures`)]) : [null, null];
    keep(rollout, [rolloutPart(deployment, versions, now, figures, path, renew)]);
  }, 1500);
}

/** Replaces the content where it has changed, so that focus stays while nothing happens. */
function keep(place, nodes) {
  const made = make("div", {}, ...nodes);
  if (place.firstElementChild?.isEqualNode(made)) return;
  const label = place.contains(document.activeElement) ? document.activeElement.textContent : null;
  place.replaceChildren(made);
  if (label) [...place.querySelectorAll("button, a")].find((each) => each.textContent === label)?.focus();
}

function drawn(visit, id, model, deployment, look, renew) {
  const workers = look.workers.filter((each) => each.model === id);
  const scale = make("button", { type: "button" }, "Change replicas");
  scale.addEventListener("click", async () => {
    if (await changeReplicas(deployment)) renew();
  });
  const versions = table({
    caption: "Versions",
    key: (row) => row.version,
    columns: [
      { head: "Version", cell: (row) => row.version },
      { head: "State", cell: (row) => [state(row.state || "unknown"), row.is_stable ? make("span", { class: "hint" }, " stable") : ""] },
      { head: "Workers", kind: "number", cell: (row) => link(whole(row.workers), "fleet") },
      { head: "Draining", kind: "number", cell: (row) => link(whole(row.draining), "fleet") },
    ],
    empty: "No version is served now.",
  });
  versions.update(model?.versions || []);
  return [
    facts([
      ["State", state(model?.state || "unknown")],
      ["Workers", link(`${workers.length} announced`, "fleet")],
      ["Running", link(whole(workers.reduce((all, each) => all + each.running, 0)), "streams")],
      deployment && ["Model", deployment.model],
      deployment && ["Replicas", link(`${deployment.min_replicas} to ${deployment.max_replicas}`, "audit", { text: id })],
      deployment && ["Pool", deployment.pool || "shared"],
      deployment && ["Goes cold after", deployment.hot || !deployment.idle_s ? "never" : link(span(deployment.idle_s), "audit", { text: id })],
      deployment && ["Fallbacks", deployment.fallbacks.length ? deployment.fallbacks.flatMap((each) => [link(each, "models", each), " "]) : none],
      deployment && ["Made", moment(deployment.created_at)],
      deployment && ["Changes", link("in the audit trail", "audit", { text: id })],
    ]),
    deployment ? make("div", { class: "row" }, scale) : "",
    section("Versions", [], versions.element),
  ];
}

function changeReplicas(deployment) {
  return ask({
    title: `Change replicas of ${deployment.id}`,
    fields: [
      { name: "min", param: "min_replicas", required: true, label: "Workers at least", type: "number", value: deployment.min_replicas, min: 0 },
      { name: "max", param: "max_replicas", required: true, label: "Workers at most", type: "number", value: deployment.max_replicas, min: 1 },
    ],
    says: ({ min, max }) => `Control runs ${min ?? "…"} to ${max ?? "…"} workers of ${deployment.id} from now on.`,
    command: ({ min, max }) => commands.changeDeployment({ id: deployment.id, min: min ?? 0, max: max ?? 1 }),
    action: "Change it",
    run: ({ min, max }) => change("PATCH", `v1/admin/deployments/${encodeURIComponent(deployment.id)}`, { min_replicas: min, max_replicas: max, revision: deployment.revision }, `${deployment.id} is changed.`),
  });
}

function rolloutPart(deployment, versions, rollout, figures, path, renew) {
  const others = versions.filter((each) => each.id !== deployment.stable);
  const isUnderWay = rollout && ["waiting", "running", "paused"].includes(rollout.state);
  const start = make("button", { type: "button", class: isUnderWay ? "" : "primary" }, "Start a rollout");
  start.disabled = Boolean(isUnderWay) || !others.length;
  start.addEventListener("click", async () => {
    if (await startRollout(deployment, others, path)) renew();
  });
  if (!rollout) {
    const say = others.length ? "No version has been rolled out here yet. A rollout sends new sessions to a new version step by step, while it is not worse than the old one." : "There is no other version to roll out. Register one where its files are: ";
    return section("Rollout", [start], make("div", { class: "empty" }, say, others.length ? "" : make("code", {}, commands.addModel({ name: deployment.model, source: "SOURCE", label: "", deploy: false }))));
  }
  const buttons = possible(rollout.state).map((step) => stepButton(deployment, step, path, renew));
  const seen = figureTable(figures, rollout);
  const asked = (text) => link(text, "audit", { text: deployment.id });
  return section("Rollout", [...buttons, start],
    facts([
      ["State", state(rollout.state)],
      ["From", rollout.old],
      ["To", rollout.new],
      ["New sessions on the new version", below(percent(rollout.share / 100), () => seen)],
      ["Steps", asked(rollout.steps.map((each, index) => `${each} %${index === rollout.step && isUnderWay ? " (now)" : ""}`).join(" → "))],
      ["Bake time", asked(span(rollout.bake_s))],
      ["Began", moment(rollout.began_at)],
      ["Why", rollout.reason || none],
    ]),
    stripe({ title: "Where new sessions begin", format: (value) => percent(value / 100), parts: [{ name: rollout.new, value: rollout.share, color: 0 }, { name: rollout.stable === rollout.new ? rollout.new : rollout.old, value: 100 - rollout.share, color: 2 }] }),
    seen);
}

function figureTable({ old, new: fresh, gateways }, rollout) {
  const row = (name, of, format, isRate = true) => ({ name, old: of(old), fresh: of(fresh), format, isRate });
  const share = (field) => (side) => (side.turns ? side[field] / side.turns : null);
  const rows = table({
    caption: "Figures of both versions",
    key: (each) => each.name,
    columns: [
      { head: "Figure", cell: (each) => each.name },
      { head: rollout.old, kind: "number", cell: (each) => asked(each, each.old) },
      { head: rollout.new, kind: "number", cell: (each) => asked(each, each.fresh) },
      { head: "Worse by", kind: "number", cell: (each) => worse(each) },
    ],
    empty: "",
  });
  rows.update([
    row("Turns", (side) => side.turns, whole, false),
    row("Errors", share("errors"), percent),
    row("Refused", share("refused"), percent),
    row("Mute", share("mute"), percent),
    row("First token, median", (side) => side.ttft_s, seconds),
    row("Between tokens, median", (side) => side.itl_s, seconds),
  ]);
  return make("div", {}, make("h3", {}, "The canary's figures"), rows.element,
    make("p", { class: "hint" }, `Counted by ${gateways} gateway${gateways === 1 ? "" : "s"} since the rollout began. Control aborts by itself when the new version is worse: more than ${rollout.tolerance.slower} times slower, or ${percent(rollout.tolerance.excess)} more errors, refusals or mute turns, after ${rollout.tolerance.min_samples} turns of each.`));
}

/** A figure, which leads to the turns that it is made of. */
function asked({ format }, value) {
  return value === null ? none : link(format(value), "requests");
}

function worse({ old, fresh, isRate }) {
  if (!isRate || old === null || fresh === null || fresh <= old) return none;
  return link(old > 0 ? `${(fresh / old).toFixed(2)} ×` : "new", "requests");
}

function stepButton(deployment, step, path, renew) {
  const [label, says] = STEPS[step];
  const isBad = step === "abort";
  const open = make("button", { type: "button" }, label);
  open.addEventListener("click", async () => {
    const done = await ask({
      title: `${label}: ${deployment.id}`,
      fields: takesReason(step) ? [{ name: "reason", label: "Why", hint: "For whoever looks at the rollout later." }] : [],
      says: () => says,
      command: ({ reason }) => commands.stepRollout({ deployment: deployment.id, step, reason }),
      action: label,
      danger: isBad,
      run: ({ reason }) => change("POST", `${path}/rollout/${step}`, { reason: reason || "" }, `${label}: done.`),
    });
    if (done) renew();
  });
  return open;
}

function startRollout(deployment, others, path) {
  const parsedSteps = (text) => text.split(/[\s,]+/).filter(Boolean).map(Number);
  return ask({
    title: `Roll out a version of ${deployment.id}`,
    fields: [
      { name: "version", label: "New version", options: others.map((each) => each.label) },
      { name: "steps", label: "Percentages of new sessions", value: "1,10,50,100", pattern: "[0-9.,\\s]+", wrong: "Write percentages with commas between them, such as 1,10,50,100.", required: true },
      { name: "bake", param: "bake_s", label: "Each step lasts at least", value: "300", options: [["0", "until you step"], ["60", "a minute"], ["300", "5 minutes"], ["3600", "an hour"]].map(([value, label]) => ({ value, label })) },
      { name: "samples", param: "tolerance", label: "Turns of each version before it can abort", type: "number", value: 200, min: 1 },
    ],
    says: ({ version, steps }) => `New sessions of ${deployment.id} go to ${version} step by step (${parsedSteps(steps).join(", ")} %), once it has a worker. Control takes it back by itself if it is worse than ${deployment.stable}.`,
    command: ({ version, steps, bake, samples }) => commands.startRollout({ deployment: deployment.id, version, steps: parsedSteps(steps), bake: Number(bake), tolerance: samples === 200 || !samples ? {} : { min_samples: samples } }),
    action: "Start it",
    run: ({ version, steps, bake, samples }) => change("POST", `${path}/rollout`, { version, steps: parsedSteps(steps), bake_s: Number(bake), ...(samples ? { tolerance: { min_samples: samples } } : {}) }, `The rollout of ${version} has begun.`),
  });
}
