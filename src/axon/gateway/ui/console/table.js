// The one table of all views: sorted by its heads, filtered, with rows that stay in place when they are new. On a narrow
// screen each row is a card. Knows no row.

import { make } from "../common/dialog.js";
import { needs } from "./commands.js";
import { none } from "./format.js";

let count = 0;

/**
 * Makes a table. `columns` are {head, cell(row, now), sort(row)?, kind?: "number" | "actions"}; `now()` is the row as it is
 * when a button of the cell is pressed: a cell that looks the same stays. `key(row)` tells rows apart;
 * `empty` is what to say and do without rows: text or elements. Returns {element, update(rows)}.
 */
export function table({ caption, columns, key, empty, sorted = null, filter = null, perPage = 200 }) {
  const body = make("tbody", { role: "rowgroup" });
  const heads = columns.map((column, index) => head(column, index));
  const found = make("span", { class: "hint" });
  const more = make("button", { type: "button", hidden: true }, "Show more");
  const nothing = make("div", { class: "empty", hidden: true });
  nothing.append(...[empty].flat());
  const unmatched = make("div", { class: "empty", hidden: true }, "Nothing here matches. Clear the filter to see all.");
  const grid = make("div", { class: "scroll", tabIndex: 0, role: "region", "aria-label": caption },
    make("table", { role: "table" }, make("caption", { class: "visually-hidden" }, caption), make("thead", { role: "rowgroup" }, make("tr", { role: "row" }, ...heads)), body));
  const sorter = sorterOf();
  const element = make("div", { class: "table" }, sorter.element, grid, nothing, unmatched, make("p", { class: "foot" }, found, more));
  const current = new WeakMap();
  let rows = [];
  let order = sorted;
  let shown = perPage;

  more.addEventListener("click", () => {
    shown += perPage;
    draw();
  });

  function head(column, index) {
    const cell = make("th", { scope: "col", role: "columnheader", class: column.kind || "" });
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

  /** The heads are not there on a narrow screen, so that a list takes their place. */
  function sorterOf() {
    const id = `sorted-${++count}`;
    const options = columns.flatMap((column, index) => (column.sort ? [[`${index} up`, `${column.head} ↑`], [`${index} down`, `${column.head} ↓`]] : []));
    const select = make("select", { id }, make("option", { value: "" }, "as it comes"), ...options.map(([value, label]) => make("option", { value }, label)));
    select.addEventListener("change", () => {
      const [index, way] = select.value.split(" ");
      order = select.value ? { index: Number(index), down: way === "down" } : sorted;
      draw();
    });
    const element = make("p", { class: "sorter", hidden: !options.length }, make("label", { htmlFor: id }, "Sorted by"), select);
    return { element, show: () => (select.value = order ? `${order.index} ${order.down ? "down" : "up"}` : "") };
  }

  function draw() {
    sorter.show();
    heads.forEach((cell, index) => {
      if (order?.index === index) cell.setAttribute("aria-sort", order.down ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    });
    const wanted = filter ? rows.filter((row) => filter(row)) : rows;
    const ordered = order ? [...wanted].sort(comparing(columns[order.index].sort, order.down)) : wanted;
    const old = new Map([...body.children].map((each) => [each.dataset.key, each]));
    const seen = new Map();
    const lines = ordered.slice(0, shown).map((row) => {
      const mark = numbered(seen, String(key(row)));
      return line(row, mark, old.get(mark));
    });
    // Rows that stay are not moved, so that focus and selection stay where they are.
    for (const each of [...body.children]) if (!lines.includes(each)) each.remove();
    lines.forEach((each, index) => {
      if (body.children[index] !== each) body.insertBefore(each, body.children[index] || null);
    });
    grid.hidden = !ordered.length;
    unmatched.hidden = !rows.length || ordered.length > 0;
    nothing.hidden = Boolean(rows.length);
    more.hidden = ordered.length <= shown;
    sorter.element.hidden = rows.length < 2 || !columns.some((column) => column.sort);
    found.textContent = counted(ordered.length, rows.length, Math.min(shown, ordered.length));
  }

  function line(row, mark, old) {
    const element = old || make("tr", { role: "row", "data-key": mark });
    const now = () => current.get(element);
    current.set(element, row);
    const cells = columns.map((column, index) => cellOf(column, [column.cell(row, now)].flat().map(child), index === 0));
    if (!old) element.append(...cells);
    else cells.forEach((cell, index) => {
      if (!old.children[index].isEqualNode(cell)) old.children[index].replaceWith(cell);
    });
    return element;
  }

  return {
    element,
    update(rows_) {
      rows = rows_;
      draw();
    },
    draw,
  };
}

/** The key of a row, with a number behind it if another row has the same: no row may hide another. */
function numbered(seen, key) {
  const times = (seen.get(key) || 0) + 1;
  seen.set(key, times);
  return times > 1 ? `${key} #${times}` : key;
}

/** A cell; on a narrow screen its head is written in it, and one that says nothing is left out. */
function cellOf(column, children, isFirst) {
  const kind = column.kind || "";
  const properties = isFirst ? { scope: "row", role: "rowheader" } : { role: "cell", "data-head": kind === "actions" ? "" : column.head };
  const cell = make(isFirst ? "th" : "td", { ...properties, class: kind }, ...children);
  if (["", none].includes(cell.textContent)) cell.classList.add("blank");
  return cell;
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

/** A number in a list of facts that leads to what it is made of: the element of `found()`, in this view. */
export function below(text, found) {
  const button = make("button", { type: "button", class: "leads" }, text);
  button.addEventListener("click", () => lead(found()));
  return button;
}

/** Shows other things in a place. Whoever had the focus there has it where it was. */
export function refill(place, ...children) {
  const reached = () => [...place.querySelectorAll("a, button")];
  const index = reached().indexOf(document.activeElement);
  place.replaceChildren(...children);
  if (index >= 0) reached()[index]?.focus({ preventScroll: true });
}

/** Facts as a list of names and values. */
export function facts(pairs) {
  const lines = pairs.filter(Boolean).flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, ...[value].flat().map(child))]);
  return make("dl", { class: "facts" }, ...lines);
}

/** A line that shows the command of a view, with what it needs. */
export function terminal(command = "") {
  const [line, condition] = [make("code"), make("span")];
  const set = (text) => {
    line.textContent = text;
    condition.textContent = ` ${needs(text)}`;
  };
  set(command);
  return { element: make("p", { class: "hint" }, "In a terminal: ", line, condition), set };
}

/** A section with a heading, what can be done there, and content. */
export function section(title, actions, ...children) {
  return make("section", { class: "part" }, make("div", { class: "head" }, make("h2", {}, title), make("span", { class: "actions" }, ...actions)), ...children);
}

/** A figure that leads to what it is made of: another view at `href`, or the element of `below()` in this one. */
export function tile({ label, href = "", below = null, hint = "" }) {
  const value = make("strong", {}, "–");
  const under = make("span", { class: "hint" }, hint);
  const element = make(href ? "a" : "button", { class: "tile", ...(href ? { href } : { type: "button" }) }, make("span", { class: "label" }, label), value, under);
  if (!href) element.addEventListener("click", () => lead(below()));
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

/** Brings a part of the view into sight, and the focus with it. */
function lead(element) {
  element.tabIndex = -1;
  element.scrollIntoView({ block: "start" });
  element.focus({ preventScroll: true });
}
