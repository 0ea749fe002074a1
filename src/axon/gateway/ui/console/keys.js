// API keys: made and shown once, rotated, revoked. Never kept by the page.

import { session } from "../common/api.js";
import { make } from "../common/dialog.js";
import { ask, change, showOnce } from "./action.js";
import { commands } from "./commands.js";
import { choice, filterBox, matching } from "./filters.js";
import { link, moment, none, state } from "./format.js";
import { table } from "./table.js";

const PATH = "v1/admin/keys";
const SCOPES = [
  { value: "inference", hint: "ask models" },
  { value: "read", hint: "read what is stored" },
  { value: "versions", hint: "name one version of a model" },
  { value: "admin", hint: "everything that this console can do" },
];
const ONCE = "Keep it now: it is not stored, and nobody can show it again.";

export async function open(visit) {
  let again = () => {};
  const own = (await session()).key;
  const tenant = filterBox(visit, "tenant", "Tenant", () => rows.draw());
  const text = filterBox(visit, "text", "Id or name", () => rows.draw());
  const which = choice(visit, "which", "Show", [["valid", "those that are valid"], ["all", "all"]], () => rows.draw());
  const add = make("button", { class: "primary", type: "button" }, "Make a key");
  add.addEventListener("click", async () => {
    if (await createKey(await visit.all("v1/admin/tenants"), tenant.value())) again();
  });
  let tenants = [];
  const wanted = (row) => matching(tenant.value(), tenants)(row.tenant) && `${row.id} ${row.name}`.includes(text.value()) && (which.value() === "all" || row.status === "valid");
  const rows = keyTable(wanted, own, () => again());
  visit.show("Keys", "A key belongs to one tenant. Its text is shown once, when it is made.", make("div", { class: "row" }, tenant.element, text.element, which.element, make("span", { class: "spacer" }), add), rows.element);
  again = await visit.poll(async () => {
    const found = await visit.all(PATH);
    tenants = found.map((each) => each.tenant);
    rows.update(found);
  }, 5000);
}

function keyTable(filter, own, again) {
  return table({
    caption: "Keys",
    key: (row) => row.id,
    filter,
    columns: [
      { head: "Key", cell: (row) => [make("code", {}, row.id), row.id === own ? make("span", { class: "hint" }, " this session") : ""], sort: (row) => row.id },
      { head: "Tenant", cell: (row) => link(row.tenant, "tenants", row.tenant), sort: (row) => row.tenant },
      { head: "Name", cell: (row) => row.name || none, sort: (row) => row.name },
      { head: "Scopes", cell: (row) => row.scopes.join(", "), sort: (row) => row.scopes.join() },
      { head: "State", cell: (row) => state(row.status), sort: (row) => row.status },
      { head: "Made", cell: (row) => moment(row.created_at), sort: (row) => row.created_at },
      { head: "Expires", cell: (row) => moment(row.expires_at), sort: (row) => row.expires_at },
      { head: "Last used", cell: (row) => (row.last_used_at ? moment(row.last_used_at) : "never"), sort: (row) => row.last_used_at },
      { head: "What can be done", kind: "actions", cell: (row, now) => (row.status === "valid" ? buttons(row, now, own, again) : "") },
    ],
    empty: "There is no key yet. Make a tenant first, then a key for it.",
  });
}

function buttons(row, now, own, again) {
  const rotate = make("button", { type: "button", class: "small", "aria-label": `Rotate ${row.id}` }, "Rotate");
  rotate.addEventListener("click", async () => {
    if (await rotateKey(now())) again();
  });
  const revoke = make("button", { type: "button", class: "small", "aria-label": `Revoke ${row.id}` }, "Revoke");
  revoke.addEventListener("click", async () => {
    if (await revokeKey(now(), own)) again();
  });
  return [make("a", { class: "button small", href: `#/streams?key=${encodeURIComponent(row.id)}`, "aria-label": `Streams of ${row.id}` }, "Streams"), " ", rotate, " ", revoke];
}

async function createKey(tenants, tenant) {
  const made = await ask({
    title: "Make a key",
    fields: [
      { name: "tenant", label: "Tenant", value: tenants.some((each) => each.id === tenant) ? tenant : tenants[0]?.id, options: tenants.map((each) => each.id) },
      { name: "name", label: "Name", hint: "A reminder of what it is for." },
      { name: "scopes", label: "What it may do", type: "checks", options: SCOPES, value: ["inference", "read"] },
      { name: "expires", param: "expires_in_s", label: "Expires after", value: "0", options: [["0", "never"], ["3600", "an hour"], ["86400", "a day"], ["2592000", "30 days"], ["7776000", "90 days"]].map(([value, label]) => ({ value, label })) },
    ],
    says: ({ tenant: whose, scopes }) => (scopes.length ? `Makes a key of the tenant ${whose} that may ${scopes.map((each) => SCOPES.find(({ value }) => value === each).hint).join(", ")}. Its text is shown once.` : "Choose at least one thing that it may do."),
    command: ({ tenant: whose, name, scopes, expires }) => commands.createKey({ tenant: whose || "TENANT", name, scopes, expires: Number(expires) }),
    action: "Make it",
    run: ({ tenant: whose, name, scopes, expires }) => change("POST", PATH, { tenant: whose, name, scopes, ...(Number(expires) ? { expires_in_s: Number(expires) } : {}) }),
  });
  if (made) await showOnce(`The key ${made.id} of ${made.tenant}`, made.key, ONCE);
  return made;
}

async function rotateKey(row) {
  const made = await ask({
    title: `Rotate ${row.id}`,
    fields: [{ name: "overlap", param: "overlap_s", label: "The old one stays good for", value: "3600", options: [["0", "no time"], ["3600", "an hour"], ["86400", "a day"], ["604800", "a week"]].map(([value, label]) => ({ value, label })) }],
    says: () => `Makes a new key of ${row.tenant} with the same scopes and shows it once. The old one, ${row.id}, ends after the time you choose.`,
    command: ({ overlap }) => commands.rotateKey({ id: row.id, overlap: Number(overlap) }),
    action: "Rotate it",
    run: ({ overlap }) => change("POST", `${PATH}/${encodeURIComponent(row.id)}/rotate`, { overlap_s: Number(overlap) }),
  });
  if (made) await showOnce(`The key ${made.id} of ${made.tenant}`, made.key, ONCE);
  return made;
}

function revokeKey(row, own) {
  return ask({
    title: `Revoke ${row.id}`,
    says: () => `Ends the key ${row.id} of ${row.tenant} for good, at every gateway within a second. Its streams end with it.${row.id === own ? " It is the key that you are signed in with: you will be signed out." : ""}`,
    command: () => commands.revokeKey(row.id),
    action: "Revoke it",
    danger: true,
    run: () => change("POST", `${PATH}/${encodeURIComponent(row.id)}/revoke`, undefined, `${row.id} is revoked.`),
  });
}
