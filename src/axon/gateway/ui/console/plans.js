// Plans: named sets of limits for many tenants.

import { make } from "../common/dialog.js";
import { ask, change } from "./action.js";
import { commands } from "./commands.js";
import { filterBox, matching } from "./filters.js";
import { link, none, whole } from "./format.js";
import { changed, HINT, written } from "./limits.js";
import { table } from "./table.js";

const PATH = "v1/admin/plans";
const DEFAULT = "default"; // tenants are on it though nobody has made it

export async function open(visit) {
  let again = () => {};
  const text = filterBox(visit, "text", "Name", () => rows.draw());
  const add = make("button", { class: "primary", type: "button" }, "Make a plan");
  add.addEventListener("click", async () => {
    if (await createPlan()) again();
  });
  let names = [];
  const rows = planTable((row) => matching(text.value(), names)(row.id), () => again());
  visit.show("Plans", "Limits that hold for all tenants on the plan, unless a tenant has its own. On default are all who name none.", make("div", { class: "row" }, text.element, make("span", { class: "spacer" }), add), rows.element);
  again = await visit.poll(async () => {
    const [plans, tenants] = await Promise.all([visit.all(PATH), visit.all("v1/admin/tenants")]);
    const found = tenants.some((each) => each.plan === DEFAULT) && !plans.some((each) => each.id === DEFAULT) ? [{ id: DEFAULT, limits: {}, isUnmade: true }, ...plans] : plans;
    names = found.map((each) => each.id);
    rows.update(found.map((plan) => ({ ...plan, tenants: tenants.filter((each) => each.plan === plan.id).length })));
  }, 10_000);
}

function planTable(filter, again) {
  return table({
    caption: "Plans",
    key: (row) => row.id,
    filter,
    columns: [
      { head: "Plan", cell: (row) => row.id, sort: (row) => row.id },
      { head: "Limits", kind: "wide", cell: (row) => (row.isUnmade ? ["none of its own: ", link("the server's settings", "settings", { text: "admission." }), " hold"] : written(row.limits) || none) },
      { head: "Tenants", kind: "number", cell: (row) => link(whole(row.tenants), "tenants", { plan: row.id }), sort: (row) => row.tenants },
      { head: "What can be done", kind: "actions", cell: (row, now) => (row.isUnmade ? "" : buttons(row, now, again)) },
    ],
    empty: "There is no plan yet, so the server's settings limit all tenants. Make one to give many tenants the same limits.",
  });
}

function buttons(plan, now, again) {
  const edit = make("button", { type: "button", class: "small", "aria-label": `Change ${plan.id}` }, "Change");
  edit.addEventListener("click", async () => {
    if (await changePlan(now())) again();
  });
  const remove = make("button", { type: "button", class: "small", "aria-label": `Remove ${plan.id}` }, "Remove");
  remove.addEventListener("click", async () => {
    if (await removePlan(plan.id)) again();
  });
  return [edit, " ", remove];
}

function createPlan() {
  return ask({
    title: "Make a plan",
    fields: [
      { name: "id", label: "Name", required: true, pattern: "[A-Za-z0-9._\\-]{1,64}", wrong: "Write 1 to 64 letters, digits, dots, dashes or underscores." },
      { name: "limits", label: "Limits", hint: HINT },
    ],
    says: ({ id }) => `Makes the plan ${id || "…"}, which tenants can then be put on.`,
    command: ({ id, limits }) => commands.createPlan({ id: id || "NAME", limits: changed(limits) }),
    action: "Make it",
    run: ({ id, limits }) => change("POST", PATH, { id, limits: changed(limits) }, `The plan ${id} is made.`),
  });
}

function changePlan(plan) {
  return ask({
    title: `Change ${plan.id}`,
    fields: [{ name: "limits", label: "Limits", value: written(plan.limits), hint: `${HINT} A word that you take away leaves that limit to the server's settings.` }],
    says: () => `Changes the limits of the plan ${plan.id}. They hold for all its tenants within a second.`,
    command: ({ limits }) => commands.changePlan({ id: plan.id, limits: changed(limits, plan.limits) }),
    action: "Change it",
    run: ({ limits }) => change("PATCH", `${PATH}/${encodeURIComponent(plan.id)}`, { limits: changed(limits, plan.limits) }, `${plan.id} is changed.`),
  });
}

function removePlan(id) {
  return ask({
    title: `Remove ${id}`,
    says: () => `Deletes the plan ${id}. It is refused while a tenant is on it.`,
    command: () => commands.removePlan(id),
    action: "Remove it",
    danger: true,
    run: () => change("DELETE", `${PATH}/${encodeURIComponent(id)}`, undefined, `${id} is removed.`),
  });
}
