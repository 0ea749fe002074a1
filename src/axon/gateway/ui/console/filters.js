// Fields that narrow a view down and stay in its address. Knows no view.

import { make } from "../common/dialog.js";

let count = 0;

/** Tells whether a value matches a text: it has the text in it or, where one of `all` is that very text, it is that one. So a
 * link to the keys of acme does not show those of acme-test. */
export function matching(text, all) {
  return all.includes(text) ? (value) => value === text : (value) => value.includes(text);
}

/** A field whose text is in the address as `name`; `changed` is called when it is another one. */
export function filterBox(visit, name, label, changed) {
  const input = make("input", { type: "search", value: visit.query.get(name) || "", id: `filter-${++count}`, autocomplete: "off", spellcheck: false, placeholder: label });
  input.addEventListener("input", () => {
    visit.setQuery(name, input.value.trim());
    changed();
  });
  return { element: make("span", { class: "filter" }, make("label", { htmlFor: input.id, class: "visually-hidden" }, label), input), value: () => input.value.trim() };
}

/** A choice that is in the address as `name`; `options` are [value, label]. */
export function choice(visit, name, label, options, changed) {
  const select = make("select", { id: `filter-${++count}` }, ...options.map(([value, text]) => make("option", { value }, text)));
  const asked = visit.query.get(name);
  select.value = options.some(([value]) => value === asked) ? asked : options[0][0];
  select.addEventListener("change", () => {
    visit.setQuery(name, select.value === options[0][0] ? "" : select.value);
    changed();
  });
  return { element: make("span", { class: "filter" }, make("label", { htmlFor: select.id }, label), select), value: () => select.value };
}
