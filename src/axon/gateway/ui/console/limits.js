// The limits of tenants and plans as one field of a dialogue: `requests_per_minute=60 weight=2`. Pure.

export const LIMITS = ["requests_per_minute", "tokens_per_minute", "concurrent", "queued", "tokens_per_day", "tokens_per_month",
  "stored_bytes", "stored_objects", "weight", "highest_tier", "models", "kv_share", "reserved", "pool"];

export const HINT = `Words like requests_per_minute=60, with spaces between them. 0 means no limit. There are: ${LIMITS.join(", ")}.`;

/** The limits of the words, and null for those of `before` that are not among them. */
export function parsed(text, before = {}) {
  const found = Object.fromEntries(Object.keys(before).map((name) => [name, null]));
  for (const word of text.split(/\s+/).filter(Boolean)) {
    const [name, ...rest] = word.split("=");
    const value = rest.join("=");
    if (name === "models") found[name] = value.split(",");
    else if (name === "highest_tier" || name === "pool") found[name] = value;
    else found[name] = value === "" || Number.isNaN(Number(value)) ? value : Number(value);
  }
  return found;
}

/** Only what changes. */
export function changed(text, before = {}) {
  return Object.fromEntries(Object.entries(parsed(text, before)).filter(([name, value]) => String(value) !== String(before[name] ?? "")));
}

export function written(limits) {
  return Object.entries(limits).map(([name, value]) => `${name}=${Array.isArray(value) ? value.join(",") : value}`).join(" ");
}
