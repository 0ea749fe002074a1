// Numbers, times and states as text. Pure; knows no element but the small ones that it makes.

import { make } from "../common/dialog.js";

const WHOLE = new Intl.NumberFormat("en");
const SHORT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export const none = "–";

export function whole(value) {
  return value === null || value === undefined ? none : WHOLE.format(value);
}

export function short(value) {
  return value === null || value === undefined ? none : SHORT.format(value);
}

export function rate(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return none;
  return value >= 100 ? whole(Math.round(value)) : value.toFixed(1);
}

export function percent(share) {
  return share === null || share === undefined || Number.isNaN(share) ? none : `${(share * 100).toFixed(share < 0.1 ? 1 : 0)} %`;
}

/** Seconds in the unit that reads best. */
export function seconds(value) {
  if (value === null || value === undefined) return none;
  if (value === 0) return "0 s";
  if (value < 0.001) return `${(value * 1e6).toFixed(0)} µs`;
  if (value < 1) return `${(value * 1000).toFixed(value < 0.01 ? 1 : 0)} ms`;
  if (value < 60) return `${value.toFixed(value < 10 ? 2 : 1)} s`;
  return span(value);
}

/** A longer time: 3 m 20 s, 5 h 2 m, 4 d 1 h. */
export function span(value) {
  if (value === null || value === undefined) return none;
  const left = Math.round(value);
  if (left < 60) return `${left} s`;
  if (left < 3600) return `${Math.floor(left / 60)} m ${left % 60} s`;
  if (left < 86400) return `${Math.floor(left / 3600)} h ${Math.floor((left % 3600) / 60)} m`;
  return `${Math.floor(left / 86400)} d ${Math.floor((left % 86400) / 3600)} h`;
}

export function bytes(value) {
  if (value === null || value === undefined) return none;
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let left = value;
  let unit = 0;
  while (left >= 1024 && unit < units.length - 1) [left, unit] = [left / 1024, unit + 1];
  return `${left.toFixed(unit && left < 10 ? 1 : 0)} ${units[unit]}`;
}

/** Text that may be broken behind its slashes, dots and underscores, and in mid-word only where it must. */
export function breakable(text) {
  return text.split(/(?<=[/_.,:;=-])/).flatMap((part, index) => (index ? [make("wbr"), part] : [part]));
}

/** A moment as a <time>; unix seconds or ISO text. */
export function moment(at) {
  if (at === null || at === undefined || at === "") return none;
  const date = typeof at === "number" ? new Date(at * 1000) : new Date(at);
  if (Number.isNaN(date.getTime())) return String(at);
  const text = date.toISOString().replace("T", " ").slice(0, 19);
  const [day, time] = text.split(" ").map((part) => make("span", { class: "unbroken" }, part));
  return make("time", { dateTime: date.toISOString(), title: `${text} UTC` }, day, " ", time);
}

export function costs(amounts) {
  return amounts.length ? amounts.map((each) => `${trimmed(each.amount)} ${each.currency}`).join(" + ") : none;
}

function trimmed(amount) {
  return amount.includes(".") ? amount.replace(/0+$/, "").replace(/\.$/, "") : amount;
}

const KINDS = {
  good: ["ready", "active", "valid", "running", "live", "promoted", "completed", "complete", "done", "stable"],
  warn: ["loading", "starting", "draining", "waiting", "paused", "cold", "suspended", "expiring", "rolled_back", "warning", "cancelled", "opened", "unknown"],
  bad: ["failed", "revoked", "expired", "aborted", "lost", "error", "closed", "silent"],
};

/** A state as a small label; its word says it, the colour only helps. */
export function state(word) {
  const kind = Object.keys(KINDS).find((each) => KINDS[each].includes(word)) || "plain";
  return make("span", { class: `state ${kind}` }, String(word).replaceAll("_", " "));
}

export function link(text, ...path) {
  return make("a", { href: to(...path) }, text);
}

/** The address of a view: to("keys", {tenant: "acme"}). */
export function to(...parts) {
  const query = parts.length && typeof parts.at(-1) === "object" ? parts.pop() : {};
  const text = new URLSearchParams(Object.entries(query).filter(([, value]) => value)).toString();
  return `#/${parts.map(encodeURIComponent).join("/")}${text && `?${text}`}`;
}
