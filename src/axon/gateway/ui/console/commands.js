// The line of the command line that does what a dialogue does, with the flags by which it finds this server. Knows no
// element and no request.

/** Commands that ask a server over HTTP; all others open the store. */
const ASKING = new Set(["trace", "fleet"]);
let place = { store: [], server: [], variables: [] };

/** Sets where commands find this server: `cli` of the session, and the address that the browser has it at. */
export function setPlace({ store, server, by_address: byAddress, variables }, address) {
  place = { store, server: byAddress ? ["--url", address] : server, variables };
}

/** What a command needs besides its flags, as a sentence; empty if nothing. */
export function needs(command) {
  const found = ASKING.has(command.split(" ")[1]) ? ["AXON_API_KEY"] : place.variables;
  if (!found.length) return "";
  return found[0] === "AXON_API_KEY"
    ? "It needs a key with the scope admin, in the environment variable AXON_API_KEY."
    : `It needs ${list(found)} in its environment, as the server has ${found.length > 1 ? "them" : "it"}.`;
}

function list(words) {
  return words.length > 1 ? `${words.slice(0, -1).join(", ")} and ${words.at(-1)}` : words[0];
}

/** One word as a POSIX shell reads it. */
export function quoted(word) {
  const text = String(word);
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

function line(...words) {
  const all = words.flat().filter((word) => word !== null && word !== undefined);
  const end = all.includes("--") ? all.indexOf("--") : all.length;
  const flags = ASKING.has(all[0]) ? place.server : place.store;
  return ["axon", ...all.slice(0, end), ...flags, ...all.slice(end)].map(quoted).join(" ");
}

/** A flag with its value, or nothing. A value with a dash in front must not be taken for another flag. */
function flag(name, value) {
  return value === "" || value === null || value === undefined ? [] : String(value).startsWith("-") ? [`${name}=${value}`] : [name, value];
}

/** A name; one with a dash in front comes behind the word that ends all flags. */
function name(...values) {
  return values.some((value) => String(value).startsWith("-")) ? ["--", ...values] : values;
}

function limitFlags(limits = {}) {
  return Object.entries(limits).flatMap(([each, value]) =>
    value === null ? ["--unset", each] : ["--limit", `${each}=${Array.isArray(value) ? value.join(",") : value}`]);
}

/** The CLI's way to write seconds. */
export function time(seconds) {
  const units = [[86400, "d"], [3600, "h"], [60, "m"]];
  const [size, unit] = units.find(([each]) => seconds && seconds % each === 0) || [1, "s"];
  return `${seconds / size}${unit}`;
}

export const commands = {
  createTenant: ({ id, name: called, plan, limits }) => line("tenants", "create", flag("--name", called), flag("--plan", plan), limitFlags(limits), name(id)),
  changeTenant: ({ id, name: called, plan, limits }) => line("tenants", "change", flag("--name", called), flag("--plan", plan), limitFlags(limits), name(id)),
  suspendTenant: (id) => line("tenants", "suspend", name(id)),
  resumeTenant: (id) => line("tenants", "resume", name(id)),
  removeTenant: (id) => line("tenants", "remove", name(id)),
  createPlan: ({ id, limits }) => line("plans", "create", limitFlags(limits), name(id)),
  changePlan: ({ id, limits }) => line("plans", "change", limitFlags(limits), name(id)),
  removePlan: (id) => line("plans", "remove", name(id)),
  createKey: ({ tenant, name: called, scopes, expires }) =>
    line("keys", "create", flag("--tenant", tenant), flag("--name", called), scopes.flatMap((scope) => ["--scope", scope]), expires ? ["--expires-in", time(expires)] : []),
  rotateKey: ({ id, overlap }) => line("keys", "rotate", ["--overlap", time(overlap)], name(id)),
  revokeKey: (id) => line("keys", "revoke", name(id)),
  drainWorker: (worker) => line("fleet", "drain", name(worker)),
  startRollout: ({ deployment, version, steps, bake, tolerance }) =>
    line("rollouts", "start", steps?.length ? ["--steps", steps.join(",")] : [], ["--bake", time(bake)], Object.entries(tolerance || {}).flatMap(([each, value]) => ["--tolerate", `${each}=${value}`]), name(deployment, version)),
  stepRollout: ({ deployment, step, reason }) => (step === "rollback" ? line("rollback", flag("--reason", reason), name(deployment)) : line("rollouts", step, takesReason(step) ? flag("--reason", reason) : [], name(deployment))),
  changeDeployment: ({ id, min, max }) => line("deployments", "change", ["--min-replicas", String(min)], ["--max-replicas", String(max)], name(id)),
  createDeployment: ({ id, model, version, min, max }) => line("deployments", "create", ["--model", model], ["--version", version], ["--min-replicas", String(min)], ["--max-replicas", String(max)], name(id)),
  removeDeployment: (id) => line("deployments", "remove", name(id)),
  setAlias: ({ id, deployment }) => line("aliases", "set", name(id, deployment)),
  removeAlias: (id) => line("aliases", "remove", name(id)),
  addAdapter: ({ model, name: called, source, tenant }) => line("models", "adapters", "add", flag("--tenant", tenant), name(model, called, source)),
  removeAdapter: ({ model, name: called }) => line("models", "adapters", "remove", name(model, called)),
  addModel: ({ name: called, source, label, deploy }) => line("models", "add", flag("--label", label), deploy ? ["--deploy"] : [], name(called, source)),
  addPrice: ({ model, version, prompt, cached, output, currency }) =>
    line("prices", "add", flag("--version", (version || "").split("@").at(-1)), ["--prompt", String(prompt)], ["--cached", String(cached)], ["--output", String(output)], flag("--currency", currency), name(model)),
  audit: ({ kind, text }) => line("audit", flag("--kind", kind), flag("--text", text)),
  trace: (id) => line("trace", name(id)),
  slowest: ({ most, since }) => line("trace", ["--slowest", String(most)], ["--since", time(since)]),
};

/** Whether the command line's step takes a reason. */
export function takesReason(step) {
  return ["promote", "abort", "rollback"].includes(step);
}
