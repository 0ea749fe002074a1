// Models: what is served, the registry behind it, aliases, adapters and prices. One deployment is in deployment.js.

import { make, toast } from "../common/dialog.js";
import { ask, change } from "./action.js";
import { commands } from "./commands.js";
import { openDeployment } from "./deployment.js";
import { link, moment, none, state, whole } from "./format.js";
import { section, table } from "./table.js";

const ID = "[A-Za-z0-9._\\-]{1,64}";
const ID_RULE = "Write 1 to 64 letters, digits, dots, dashes or underscores.";

export async function open(visit) {
  if (visit.parts.length) return openDeployment(visit, visit.parts[0]);
  let again = () => {};
  const renew = () => again();
  const served = servedTable();
  const registered = registeredTable();
  const deployments = deploymentTable(renew);
  const aliases = aliasTable(renew);
  const adapters = adapterTable(renew);
  const prices = priceTable();
  let found = { models: [], versions: [], deployments: [] };
  const button = (label, act) => {
    const open = make("button", { type: "button", class: "small" }, label);
    open.addEventListener("click", async () => {
      if (await act()) renew();
    });
    return open;
  };
  visit.show("Models", "What clients can ask for, and the registry behind it.",
    section("Served", [], served.element),
    section("Deployments", [button("Make a deployment", () => createDeployment(found))], deployments.element),
    section("Registered models", [button("Register a model", registerModel)], registered.element),
    section("Aliases", [button("Set an alias", () => setAlias(found.deployments))], aliases.element),
    section("Adapters", [button("Add an adapter", async () => addAdapter(found, await visit.all("v1/admin/tenants")))], adapters.element),
    section("Prices", [button("Add a price", () => addPrice(found))], prices.element));
  again = await visit.poll(async () => {
    const [look, models, rest, others, more, dear] = await Promise.all([
      visit.get("v1/admin/overview"), visit.all("v1/admin/models"), visit.all("v1/admin/deployments"),
      visit.all("v1/admin/aliases"), visit.all("v1/admin/adapters"), visit.all("v1/admin/prices")]);
    const versions = (await Promise.all(models.map((each) => visit.all(`v1/admin/models/${encodeURIComponent(each.id)}/versions`)))).flat();
    found = { models, versions, deployments: rest, served: look.models };
    served.update(look.models);
    registered.update(models.map((model) => ({ ...model, versions: versions.filter((each) => each.model === model.id) })));
    deployments.update(rest);
    aliases.update(others);
    adapters.update(more);
    prices.update(dear);
  }, 5000);
}

function servedTable() {
  return table({
    caption: "Served models",
    key: (row) => row.name,
    columns: [
      { head: "Model", cell: (row) => link(row.name, "models", row.name), sort: (row) => row.name },
      { head: "State", cell: (row) => state(row.state), sort: (row) => row.state },
      { head: "Workers", kind: "number", cell: (row) => link(whole(row.workers), "fleet"), sort: (row) => row.workers },
      { head: "Draining", kind: "number", cell: (row) => link(whole(row.draining), "fleet"), sort: (row) => row.draining },
      { head: "Wanted", kind: "number", cell: (row) => (row.wanted === null ? none : link(whole(row.wanted), "fleet")), sort: (row) => row.wanted },
      { head: "Versions", kind: "wide", cell: (row) => row.versions.flatMap((each) => [each.version, each.is_stable ? make("span", { class: "hint" }, " stable") : "", " "]) },
    ],
    empty: ["This server offers nothing yet. Register a model where its files are: ", make("code", {}, commands.addModel({ name: "NAME", source: "SOURCE", deploy: true }))],
  });
}

function registeredTable() {
  return table({
    caption: "Registered models",
    key: (row) => row.id,
    columns: [
      { head: "Model", cell: (row) => row.id, sort: (row) => row.id },
      { head: "Versions", kind: "wide", cell: (row) => row.versions.flatMap((each) => [make("span", { title: `${each.source} ${each.digest}` }, each.label), make("span", { class: "hint" }, ` ${each.digest.slice(0, 12)} `)]) },
      { head: "Can", cell: (row) => row.capabilities.join(", ") },
      { head: "Context", kind: "number", cell: (row) => link(whole(row.versions[0]?.max_model_len || row.max_model_len), "audit", { kind: "version", text: row.id }), sort: (row) => row.max_model_len },
      { head: "Licence", cell: (row) => row.licence || none },
      { head: "Added", cell: (row) => moment(row.created_at), sort: (row) => row.created_at },
    ],
    empty: [make("p", {}, "The registry is empty; what is served comes from the server's settings. Registering reads and checks the files, so it is done where these are:"), make("pre", { tabIndex: 0 }, commands.addModel({ name: "qwen3", source: "hf://Qwen/Qwen3-0.6B@main", deploy: true }))],
  });
}

function deploymentTable(renew) {
  return table({
    caption: "Deployments",
    key: (row) => row.id,
    columns: [
      { head: "Deployment", cell: (row) => link(row.id, "models", row.id), sort: (row) => row.id },
      { head: "Model", cell: (row) => row.model, sort: (row) => row.model },
      { head: "Stable version", cell: (row) => row.stable, sort: (row) => row.stable },
      { head: "Replicas", kind: "number", cell: (row) => link(`${row.min_replicas} to ${row.max_replicas}`, "models", row.id), sort: (row) => row.max_replicas },
      { head: "Pool", cell: (row) => row.pool || "shared" },
      { head: "Rollout", cell: (row) => (row.rollout ? [state(row.rollout.state), ` ${row.rollout.new}`] : none) },
      { head: "What can be done", kind: "actions", cell: (row) => remover(`Remove ${row.id}`, `Removes the deployment ${row.id}: clients cannot ask for it any more. It is refused while an alias, a fallback or a session leads to it.`, commands.removeDeployment(row.id), `v1/admin/deployments/${encodeURIComponent(row.id)}`, renew) },
    ],
    empty: "There is no deployment: a registered version is served once one is made of it.",
  });
}

function aliasTable(renew) {
  return table({
    caption: "Aliases",
    key: (row) => row.id,
    columns: [
      { head: "Alias", cell: (row) => row.id, sort: (row) => row.id },
      { head: "Stands for", cell: (row) => link(row.deployment, "models", row.deployment) },
      { head: "What can be done", kind: "actions", cell: (row) => remover(`Remove ${row.id}`, `Removes the alias ${row.id}; its deployment stays.`, commands.removeAlias(row.id), `v1/admin/aliases/${encodeURIComponent(row.id)}`, renew) },
    ],
    empty: "There is no alias. One lets clients keep a name while you switch what it means.",
  });
}

function adapterTable(renew) {
  return table({
    caption: "Adapters",
    key: (row) => row.id,
    columns: [
      { head: "Adapter", cell: (row) => row.id, sort: (row) => row.id },
      { head: "For", cell: (row) => (row.tenant ? link(row.tenant, "tenants", row.tenant) : "everybody"), sort: (row) => row.tenant },
      { head: "Source", kind: "wide", cell: (row) => row.files[0]?.source || none },
      { head: "Digest", cell: (row) => make("code", {}, (row.files[0]?.digest || "").slice(0, 12)) },
      { head: "Added", cell: (row) => moment(row.created_at), sort: (row) => row.created_at },
      { head: "What can be done", kind: "actions", cell: (row) => remover(`Remove ${row.id}`, `Removes the adapter ${row.id}: no request may name it any more. Turns that run with it end with it.`, commands.removeAdapter({ model: row.model, name: row.label }), `v1/admin/adapters/${encodeURIComponent(row.id)}`, renew) },
    ],
    empty: "There is no LoRA adapter. One is a few megabytes beside its model; requests name it model:adapter.",
  });
}

function priceTable() {
  return table({
    caption: "Prices",
    key: (row) => row.id,
    perPage: 20,
    columns: [
      { head: "Model", cell: (row) => row.version || row.model, sort: (row) => row.model },
      { head: "Prompt", kind: "number", cell: (row) => link(String(row.prompt), "audit", { kind: "price", text: row.id }), sort: (row) => row.prompt },
      { head: "Cached", kind: "number", cell: (row) => link(String(row.cached), "audit", { kind: "price", text: row.id }), sort: (row) => row.cached },
      { head: "Answer", kind: "number", cell: (row) => link(String(row.output), "audit", { kind: "price", text: row.id }), sort: (row) => row.output },
      { head: "Currency, for a million", cell: (row) => row.currency },
      { head: "Since", cell: (row) => moment(row.since), sort: (row) => row.since },
    ],
    empty: "No model has a price, so usage has tokens alone.",
  });
}

function remover(title, says, command, path, renew) {
  const open = make("button", { type: "button", class: "small", "aria-label": title }, "Remove");
  open.addEventListener("click", async () => {
    const done = await ask({ title, says: () => says, command: () => command, action: "Remove it", danger: true, run: () => change("DELETE", path, undefined, "It is removed.") });
    if (done) renew();
  });
  return open;
}

function createDeployment({ versions }) {
  return ask({
    title: "Make a deployment",
    fields: [
      { name: "id", param: "name", label: "Name", required: true, pattern: ID, wrong: ID_RULE, hint: "By which clients ask for it." },
      { name: "version", label: "Version", options: versions.map((each) => each.id), required: true },
      { name: "min", param: "min_replicas", required: true, label: "Workers at least", type: "number", value: 1, min: 0, hint: "0 lets it go cold." },
      { name: "max", param: "max_replicas", required: true, label: "Workers at most", type: "number", value: 1, min: 1 },
    ],
    says: ({ id, version }) => (versions.length ? `Serves ${version} under the name ${id || "…"}.` : "Register a model first: axon models add NAME SOURCE."),
    command: ({ id, version, min, max }) => commands.createDeployment({ id: id || "NAME", model: (version || "MODEL@VERSION").split("@")[0], version: version || "VERSION", min: min ?? 1, max: max ?? 1 }),
    action: "Make it",
    run: ({ id, version, min, max }) => change("POST", "v1/admin/deployments", { id, model: version.split("@")[0], version, min_replicas: min, max_replicas: max }, `${id} is made.`),
  });
}

/** Registering reads and checks files, so that it is done where these are; the dialogue writes the command. */
function registerModel() {
  return ask({
    title: "Register a model",
    fields: [
      { name: "name", label: "Name", required: true, pattern: ID, wrong: ID_RULE },
      { name: "source", label: "Source", required: true, hint: "A folder, a .gguf file, hf://org/name@revision or s3://bucket/prefix." },
      { name: "label", label: "Version", hint: "Its name among the model's versions, such as v2. Empty for the next one." },
      { name: "deploy", label: "Serve it", value: "yes", options: [{ value: "yes", label: "under the model's name, at once" }, { value: "", label: "not yet: it is another version, or waits for a rollout" }] },
    ],
    says: () => "Registering fetches, reads and checks the model's files, so it is done where these are. Copy the command and run it there; the model appears here when it is done.",
    command: ({ name, source, label, deploy }) => commands.addModel({ name: name || "NAME", source: source || "SOURCE", label, deploy: Boolean(deploy) }),
    action: "Copy the command",
    run: async ({ name, source, label, deploy }) => {
      const text = commands.addModel({ name, source, label, deploy: Boolean(deploy) });
      try {
        await navigator.clipboard.writeText(text);
      } catch {
        throw new Error("The browser does not let the page copy. Mark the command above and copy it by hand.");
      }
      toast("The command is copied. Run it where the model's files are.");
    },
  });
}

function setAlias(deployments) {
  return ask({
    title: "Set an alias",
    fields: [
      { name: "id", param: ["name", "alias"], label: "Alias", required: true, pattern: ID, wrong: ID_RULE },
      { name: "deployment", label: "Stands for", options: deployments.map((each) => each.id), required: true },
    ],
    says: ({ id, deployment }) => (deployments.length ? `Requests for ${id || "…"} mean ${deployment} from now on.` : "Make a deployment first: an alias stands for one."),
    command: ({ id, deployment }) => commands.setAlias({ id: id || "NAME", deployment: deployment || "DEPLOYMENT" }),
    action: "Set it",
    run: async ({ id, deployment }) => {
      try {
        return await change("POST", "v1/admin/aliases", { id, deployment }, `${id} means ${deployment}.`);
      } catch (error) {
        if (error.status !== 409) throw error;
        const { api } = await import("../common/api.js");
        const { revision } = await api("GET", `v1/admin/aliases/${encodeURIComponent(id)}`);
        return change("PATCH", `v1/admin/aliases/${encodeURIComponent(id)}`, { deployment, revision }, `${id} means ${deployment}.`);
      }
    },
  });
}

function addAdapter({ models, served }, tenants) {
  const names = [...new Set([...models.map((each) => each.id), ...(served || []).map((each) => each.name)])];
  return ask({
    title: "Add an adapter",
    fields: [
      { name: "model", label: "Model", options: names, required: true },
      { name: "name", label: "Name", required: true, pattern: ID, wrong: ID_RULE, hint: "Behind the colon in requests." },
      { name: "source", label: "Source", required: true, hint: "A folder that every worker can read, hf://org/name@revision or s3://bucket/prefix." },
      { name: "tenant", label: "Only for the tenant", value: "", options: [{ value: "", label: "everybody" }, ...tenants.map((each) => each.id)], hint: "To others it does not exist." },
    ],
    says: ({ model, name }) => `Fetches the adapter's files, checks them and registers it: requests may name ${model || "MODEL"}:${name || "…"} then. One of this name gets the new files.`,
    command: ({ model, name, source, tenant }) => commands.addAdapter({ model: model || "MODEL", name: name || "NAME", source: source || "SOURCE", tenant }),
    action: "Add it",
    run: (values) => change("POST", "v1/admin/adapters", values, `${values.model}:${values.name} may be asked for.`),
  });
}

function addPrice({ models, versions }) {
  const number = (name, label) => ({ name, label, type: "number", value: 0, min: 0, step: "any" });
  return ask({
    title: "Add a price",
    fields: [{ name: "model", label: "Model", options: models.map((each) => each.id), required: true }, { name: "version", label: "Version", value: "", options: [{ value: "", label: "every one without a price of its own" }, ...versions.map((each) => each.id)], hint: "One of the model's." }, number("prompt", "A million prompt tokens"), number("cached", "A million prompt tokens from the cache"), number("output", "A million answer tokens"), { name: "currency", label: "Currency", value: "USD", pattern: "[A-Z]{3}", wrong: "Write three capital letters, such as EUR.", required: true }],
    says: ({ model, version }) => (models.length ? `Turns of ${version || model} that are accepted from now on have this price. A price is never changed: a later one follows it.` : "Register a model first: prices belong to registered models."),
    command: ({ model, version, prompt, cached, output, currency }) => commands.addPrice({ model: model || "MODEL", version, prompt: prompt ?? 0, cached: cached ?? 0, output: output ?? 0, currency }),
    action: "Add it",
    run: (values) => change("POST", "v1/admin/prices", values, "The price holds from now on."),
  });
}
