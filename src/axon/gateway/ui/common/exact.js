// JSON with whole numbers that are longer than a script's own numbers. Knows no page.

const LONG = /\d{16}|\de\+?\d\d/i;

/** Returns the value of JSON text. A number too large to be exact is kept as its own text, where the browser can, so that it
 * is written as it was read. Throws SyntaxError. */
export function parsed(text) {
  const canKeep = "rawJSON" in JSON && LONG.test(text);
  return JSON.parse(text, canKeep ? exact : undefined);
}

function exact(_, value, found) {
  const isTooLarge = typeof value === "number" && Math.abs(value) > Number.MAX_SAFE_INTEGER;
  return isTooLarge && found?.source ? JSON.rawJSON(found.source) : value;
}
