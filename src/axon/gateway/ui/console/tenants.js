// Tenants: all of them, and one with the limits that hold, what it stores and where to look on.

import { make } from "../common/dialog.js";
import { ask, change } from "./action.js";
import { commands } from "./commands.js";
import { filterBox, matching } from "./filters.js";
import { bytes, link, moment, none, state, whole } from "./format.js";
import { changed, HINT, written } from "./limits.js";
import { facts, refill, section, table } from "./table.js";

const PATH = "v1/admin/tenants";
const ID = "[A-Za-z0-9._\\-]{1,64}";

export async function open(visit) {
  return visit.parts.length ? openOne(visit, visit.parts[0]) : openAll(visit);
}

async function openAll(visit) {
  let again = () => {};
  const text = filterBox(visit, "text", "Id or name", () => rows.draw());
  const add = make("button", { class: "primary", type: "button" }, "Make a tenant");
  const plan = filterBox(visit, "plan", "Plan", () => rows.draw());
  let plans = [];
  const rows = tenantTable((row) => matching(plan.value(), plans)(row.plan) && `${row.id} ${row.name}`.toLowerCase().includes(text.value().toLowerCase()));
  add.addEventListener("click", async () => {
    if (await createTenant(await visit.all("v1/admin/plans"))) again();
  });
  visit.show("Tenants", "A tenant is who is billed, limited and kept apart from others.", make("div", { class: "row" }, text.element, plan.element, make("span", { class: "spacer" }), add), rows.element);
  again = await visit.poll(async () => {
    const found = await visit.all(PATH);
    plans = found.map((each) => each.plan);
    rows.update(found);
  }, 5000);
}

function planOptions(plans) {
  return [...new Set(["default", ...plans.map((each) => each.id)])];
}

function createTenant(plans) {
  return ask({
    title: "Make a tenant",
    fields: [
      { name: "id", label: "Id", required: true, pattern: ID, wrong: "Write 1 to 64 letters, digits, dots, dashes or underscores.", hint: "1 to 64 letters, digits, dots, dashes or underscores. It cannot be changed." },
      { name: "name", label: "Name", hint: "For people to read." },
      { name: "plan", label: "Plan", options: planOptions(plans) },
      { name: "limits", label: "Limits of its own", hint: HINT },
    ],
    says: ({ id, plan }) => `Makes the tenant ${id || "…"} on the plan ${plan}. It can send requests once it has a key.`,
    command: ({ id, name, plan, limits }) => commands.createTenant({ id: id || "ID", name, plan, limits: changed(limits) }),
    action: "Make it",
    run: ({ id, name, plan, limits }) => change("POST", PATH, { id, name, plan, limits: changed(limits) }, `The tenant ${id} is made. Make a key for it next.`),
  });
}

function tenantTable(filter) {
  return table({
    caption: "Tenants",
    key: (row) => row.id,
    filter,
    columns: [
      { head: "Tenant", cell: (row) => link(row.id, "tenants", row.id), sort: (row) => row.id },
      { head: "Name", cell: (row) => row.name || none, sort: (row) => row.name },
      { head: "State", cell: (row) => state(row.status), sort: (row) => row.status },
      { head: "Plan", cell: (row) => link(row.plan, "plans", { text: row.plan }), sort: (row) => row.plan },
      { head: "Limits of its own", kind: "wide", cell: (row) => written(row.limits) || none },
      { head: "Made", cell: (row) => moment(row.created_at), sort: (row) => row.created_at },
      { head: "Look at", cell: (row) => [link("keys", "keys", { tenant: row.id }), " · ", link("usage", "usage", { tenant: row.id }), " · ", link("streams", "streams", { tenant: row.id })] },
    ],
    empty: "There is no tenant yet. Make one, then a key for it.",
  });
}

async function openOne(visit, id) {
  let again = () => {};
  const path = `${PATH}/${encodeURIComponent(id)}`;
  const place = make("div");
  visit.show(`Tenant ${id}`, "", place);
  let last = "";
  again = await visit.poll(async () => {
    const tenant = await visit.get(path);
    const plan = await visit.get(`v1/admin/plans/${encodeURIComponent(tenant.plan)}`, { orNull: true });
    if (JSON.stringify([tenant, plan]) === last) return;
    last = JSON.stringify([tenant, plan]);
    refill(place, ...drawn(visit, tenant, plan, path, () => again()));
  }, 5000);
}

function drawn(visit, tenant, plan, path, again) {
  const { id } = tenant;
  const isSuspended = tenant.status === "suspended";
  const edit = make("button", { type: "button" }, "Change");
  const halt = make("button", { type: "button", class: isSuspended ? "primary" : "" }, isSuspended ? "Resume" : "Suspend");
  const remove = make("button", { type: "button" }, "Remove");
  edit.addEventListener("click", async () => {
    if (await changeTenant(tenant, await visit.all("v1/admin/plans"), path)) again();
  });
  halt.addEventListener("click", async () => {
    if (await (isSuspended ? resume(id, path) : suspend(id, path))) again();
  });
  remove.addEventListener("click", async () => {
    if (await removeTenant(id, path)) location.hash = "#/tenants";
  });
  return [
    make("div", { class: "row" }, edit, halt, remove),
    facts([
      ["State", state(tenant.status)],
      ["Name", tenant.name || none],
      ["Plan", link(tenant.plan, "plans", { text: tenant.plan })],
      ["Made", moment(tenant.created_at)],
      ["Stored", link(`${bytes(tenant.stored.bytes)} in ${whole(tenant.stored.objects)} objects`, "usage", { tenant: id })],
      ["Look at", [link("Keys", "keys", { tenant: id }), " · ", link("Usage", "usage", { tenant: id }), " · ", link("Streams", "streams", { tenant: id }), " · ", link("Log lines", "logs", { text: id }), " · ", link("Adapters", "models")]],
    ]),
    section("Limits that hold", [], limitTable(tenant, plan)),
  ];
}

/** Where a limit comes from, with a way there. */
function origin(name, tenant, plan) {
  if (name in tenant.limits) return [make("strong", {}, "its own"), " ", link("who set it", "audit", { kind: "tenant", text: tenant.id })];
  if (plan && name in plan.limits) return ["its plan ", link(plan.id, "plans", { text: plan.id })];
  return ["the server: ", link(`admission.${name}`, "settings", { text: name })];
}

function limitTable(tenant, plan) {
  const rows = table({
    caption: "Limits that hold",
    key: (row) => row.name,
    columns: [
      { head: "Limit", cell: (row) => make("code", {}, row.name) },
      { head: "Value", cell: (row) => row.value },
      { head: "From", cell: (row) => row.from },
    ],
    empty: "No limit holds.",
  });
  rows.update(Object.entries(tenant.terms).map(([name, value]) => ({
    name,
    value: value === null || (Array.isArray(value) && !value.length) || value === "" ? none : value === 0 ? "no limit" : typeof value === "number" ? whole(value) : String(value),
    from: origin(name, tenant, plan),
  })));
  return rows.element;
}

function changeTenant(tenant, plans, path) {
  const before = written(tenant.limits);
  return ask({
    title: `Change ${tenant.id}`,
    fields: [
      { name: "name", label: "Name", value: tenant.name },
      { name: "plan", label: "Plan", value: tenant.plan, options: planOptions(plans) },
      { name: "limits", label: "Limits of its own", value: before, hint: `${HINT} A word that you take away leaves that limit to the plan.` },
    ],
    says: () => `Changes the tenant ${tenant.id}. New limits hold for new requests within a second.`,
    command: ({ name, plan, limits }) => commands.changeTenant({ id: tenant.id, name, plan, limits: changed(limits, tenant.limits) }),
    action: "Change it",
    run: ({ name, plan, limits }) => change("PATCH", path, { name, plan, limits: changed(limits, tenant.limits) }, `${tenant.id} is changed.`),
  });
}

function suspend(id, path) {
  return ask({
    title: `Suspend ${id}`,
    says: () => `Refuses all requests of ${id} within a second. What runs goes on to its end, and its data is kept. You can resume it at any time.`,
    command: () => commands.suspendTenant(id),
    action: "Suspend it",
    danger: true,
    run: () => change("POST", `${path}/suspend`, undefined, `${id} is suspended.`),
  });
}

function resume(id, path) {
  return ask({
    title: `Resume ${id}`,
    says: () => `Accepts requests of ${id} again.`,
    command: () => commands.resumeTenant(id),
    action: "Resume it",
    run: () => change("POST", `${path}/resume`, undefined, `${id} may ask again.`),
  });
}

function removeTenant(id, path) {
  return ask({
    title: `Remove ${id}`,
    says: () => `Deletes the tenant ${id} for good. Its keys must be revoked first; its usage is kept, and its id cannot be used again.`,
    command: () => commands.removeTenant(id),
    action: "Remove it",
    danger: true,
    run: () => change("DELETE", path, undefined, `${id} is removed.`),
  });
}
