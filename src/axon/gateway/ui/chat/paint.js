// When the browser paints. Knows no page.

const LONGEST_MS = 100; // a tab that nobody sees paints nothing

/** Runs `act` once what has changed by now is painted. Returns what runs it at once, if it has not run. */
export function afterPaint(act) {
  let isDone = false;
  const once = () => {
    if (isDone) return;
    isDone = true;
    act();
  };
  requestAnimationFrame(() => setTimeout(once));
  setTimeout(once, LONGEST_MS);
  return once;
}
