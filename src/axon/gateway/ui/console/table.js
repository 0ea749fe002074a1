// The one table of all views: sorted by its heads, filtered, with rows that stay in place when they are new. Knows no row.

import { make } from "../common/dialog.js";

/**
 * Makes a table. `columns` are {head, cell(row), sort(row)?, kind?: "number" | "actions"}; `key(row)` tells rows apart;
 * `empty` is what to say and do without rows: text or elements. Returns {element, update(rows)}.
 */
export function table({ caption, columns, key, empty, sorted = null, filter = null, perPage = 200 }) {
  const body = make("tbody");
  const heads = columns.map((column, index) => head(column, index));
  const count = make("span", { class: "hint" });
  const more = make("button", { type: "button", hidden: true }, "Show more");
  const nothing = make("div", { class: "empty", hidden: true });
  nothing.append(...[empty].flat());
  const grid = make("div", { class: "scroll", tabIndex: 0, role: "region", "aria-label": caption },
    make("table", {}, make("caption", { class: "visually-hidden" }, caption), make("thead", {}, make("tr", {}, ...heads)), body));
  const element = make("div", { class: "table" }, grid, nothing, make("p", { class: "foot" }, count, more));
  let rows = [];
  let order = sorted;
  let shown = perPage;

  more.addEventListener("click", () => {
    shown += perPage;
    draw();
  });

  function head(column, index) {
    const cell = make("th", { scope: "col", class: column.kind || "" });
    if (!column.sort) cell.append(column.kind === "actions" ? make("span", { class: "visually-hidden" }, column.head) : column.head);
    else {
      const button = make("button", { type: "button", class: "sort" }, column.head);
      button.addEventListener("click", () => {
        order = order?.index === index ? { index, down: !order.down } : { index, down: column.kind === "number" };
        draw();
      });
      cell.append(button);
    }
    return cell;
  }

  function draw() {
    heads.forEach((cell, index) => {
      if (order?.index === index) cell.setAttribute("aria-sort", order.down ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    });
    const wanted = filter ? rows.filter((row) => filter(row)) : rows;
    const ordered = order ? [...wanted].sort(comparing(columns[order.index].sort, order.down)) : wanted;
    const old = new Map([...body.children].map((each) => [each.dataset.key, each]));
    const lines = ordered.slice(0, shown).map((row) => line(row, old.get(String(key(row)))));
    // Rows that stay are not moved, so that focus and selection stay where they are.
    for (const each of [...body.children]) if (!lines.includes(each)) each.remove();
    lines.forEach((each, index) => {
      if (body.children[index] !== each) body.insertBefore(each, body.children[index] || null);
    });
    grid.hidden = !rows.length;
    nothing.hidden = Boolean(rows.length);
    more.hidden = ordered.length <= shown;
    count.textContent = counted(ordered.length, rows.length, Math.min(shown, ordered.length));
  }

  function line(row, old) {
    const cells = columns.map((column, index) =>
      make(index ? "td" : "th", { class: column.kind || "", ...(index ? {} : { scope: "row" }) }, ...[column.cell(row)].flat().map(child)));
    if (!old) return make("tr", { "data-key": String(key(row)) }, ...cells);
    cells.forEach((cell, index) => {
      if (!old.children[index].isEqualNode(cell)) old.children[index].replaceWith(cell);
    });
    return old;
  }

  return {
    element,
    update(found) {
      rows = found;
      draw();
    },
    draw,
  };
}

function child(value) {
  return value instanceof Node ? value : String(value ?? "");
}

function comparing(of, down) {
  return (one, other) => {
    const [a, b] = [of(one), of(other)];
    const found = typeof a === "string" || typeof b === "string" ? String(a ?? "").localeCompare(String(b ?? ""), "en") : (a ?? -1) - (b ?? -1);
    return down ? -found : found;
  };
}

function counted(wanted, all, shown) {
  if (!all) return "";
  if (shown < wanted) return `${shown} of ${wanted} are shown`;
  return wanted === all ? "" : `${wanted} of ${all} match`;
}

/** Facts as a list of names and values. */
export function facts(pairs) {
  const lines = pairs.filter(Boolean).flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, ...[value].flat().map(child))]);
  return make("dl", { class: "facts" }, ...lines);
}

/** A section with a heading, what can be done there, and content. */
export function section(title, actions, ...children) {
  return make("section", { class: "part" }, make("div", { class: "head" }, make("h2", {}, title), make("span", { class: "actions" }, ...actions)), ...children);
}

/** A figure that links to what it is made of. */
export function tile({ label, href, hint = "" }) {
  const value = make("strong", {}, "–");
  const under = make("span", { class: "hint" }, hint);
  const element = make(href ? "a" : "div", { class: "tile", ...(href ? { href } : {}) }, make("span", { class: "label" }, label), value, under);
  return {
    element,
    set(text, more = hint, kind = "") {
      value.textContent = text;
      under.textContent = more;
      element.dataset.kind = kind;
    },
    append: (node) => element.append(node),
  };
}
