// The OpenAPI document as a page. The server is shown under the path of this page, whatever that is.

const root = new URL(".", location.href).href.replace(/\/$/, "");
const make = (tag, text, cls) => { const e = document.createElement(tag); if (text) e.textContent = text; if (cls) e.className = cls; return e; };
function kind(schema) {
  if (!schema) return "";
  if (schema.anyOf) return schema.anyOf.map(kind).filter(k => k !== "null").join(" | ");
  if (schema.enum) return schema.enum.map(v => JSON.stringify(v)).join(" | ");
  if (schema.type === "array") return "list of " + kind(schema.items);
  return schema.type || "any";
}
function range(schema) {
  const parts = (schema.anyOf || [schema]).filter(s => s.type !== "null");
  const words = { minimum: "≥", exclusiveMinimum: ">", maximum: "≤", exclusiveMaximum: "<", maxItems: "items ≤", minItems: "items ≥", maxLength: "length ≤" };
  return [...new Set(parts.flatMap(s => Object.entries(words).filter(([k]) => k in s).map(([k, w]) => `${w} ${s[k]}`)))].join(", ");
}
function rows(pairs) {
  const table = make("table");
  for (const [name, schema, required] of pairs) {
    const row = table.insertRow();
    row.insertCell().append(make("code", name));
    row.insertCell().append(make("span", kind(schema) + (required ? ", required" : ""), "dim"));
    row.insertCell().append(make("span", range(schema), "dim"));
  }
  return table;
}
const JSON_TYPE = "application/json", FORM_TYPE = "multipart/form-data";
/** Returns {type, schema} of what a route takes as its body; null where it takes none. */
function bodyOf(operation) {
  const content = operation.requestBody?.content || {};
  const type = [JSON_TYPE, ...Object.keys(content)].find(each => content[each]?.schema);
  return type ? { type, schema: content[type].schema } : null;
}
function sample(schema) {
  const has = name => schema.properties && name in schema.properties;
  if (has("messages")) return { model: "MODEL", messages: [{ role: "user", content: "Hello!" }], stream: true };
  if (has("prompt")) return { model: "MODEL", prompt: "Once upon a time", max_tokens: 32 };
  if (has("input")) return { model: "MODEL", input: "Hello!" };
  if (has("items")) return { items: [{ role: "user", content: "Hello!" }] };
  return has("metadata") ? { metadata: { topic: "greetings" } } : null;
}
function curl(method, path, body) {
  const data = body ? given(body) : "", verb = method === "GET" || data ? "" : `-X ${method} `;
  return `curl -N ${verb}${root}${path} -H "Authorization: Bearer $AXON_API_KEY"${data}`;
}
function given({ type, schema }) {
  if (type === FORM_TYPE) return Object.entries(schema.properties || {}).filter(([name]) => schema.required?.includes(name))
    .map(([name, field]) => ` \\\n  -F ${name}=${field.format === "binary" ? "@FILE" : field.enum?.[0] || "VALUE"}`).join("");
  if (type !== JSON_TYPE) return ` \\\n  -H "Content-Type: ${type}" --data-binary @FILE`;
  const data = sample(schema);
  return data ? ` \\\n  -H "Content-Type: ${JSON_TYPE}" -d '${JSON.stringify(data)}'` : "";
}
fetch("openapi.json").then(r => r.json()).then(api => {
  document.getElementById("about").textContent = `${api.info.description} Version ${api.info.version}.`;
  const groups = {};
  for (const [path, methods] of Object.entries(api.paths))
    for (const [method, operation] of Object.entries(methods))
      (groups[operation.tags?.[0] || "other"] ||= []).push([method.toUpperCase(), path, operation]);
  for (const [group, list] of Object.entries(groups)) {
    document.getElementById("routes").append(make("h2", group));
    for (const [method, path, operation] of list) {
      const box = make("details"), head = make("summary");
      head.append(make("span", method, "method"), make("code", path), make("span", operation.summary, "dim"));
      box.append(head, make("p", operation.description));
      if (operation.parameters) box.append(rows(operation.parameters.map(p => [p.name, p.schema, p.required])));
      const body = bodyOf(operation), fields = Object.entries(body?.schema.properties || {});
      if (fields.length) box.append(rows(fields.map(([n, s]) => [n, s, body.schema.required?.includes(n)])));
      const line = make("pre", curl(method, path, body));
      line.tabIndex = 0; // what is wider than the page is scrolled by the keyboard
      box.append(line);
      document.getElementById("routes").append(box);
    }
  }
}).catch(error => { document.getElementById("about").textContent = "The API document could not be read: " + error; });
