// Light and dark: what the system says, unless somebody chose. Knows no page.

const NAME = "axon.theme";

/** Returns "light", "dark" or "system". */
export function theme() {
  return document.documentElement.dataset.theme || "system";
}

/** Sets the theme of this browser for all pages. */
export function setTheme(name) {
  if (name === "light" || name === "dark") document.documentElement.dataset.theme = name;
  else delete document.documentElement.dataset.theme;
  try {
    if (name === "system") localStorage.removeItem(NAME);
    else localStorage.setItem(NAME, name);
  } catch {
    // It holds until the page is closed.
  }
}
