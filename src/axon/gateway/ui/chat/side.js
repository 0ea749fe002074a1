// The list's place beside the thread; on a narrow page it lies over it. Knows no list.

const narrow = matchMedia("(max-width: 48rem)"); // as chat.css has it
const at = (id) => document.getElementById(id);

/** Sets up what opens and closes the list on a narrow page. */
export function setUpSide() {
  at("side-open").addEventListener("click", () => (showSide(true), at("side-close").focus()));
  at("side-close").addEventListener("click", () => showSide(false));
  at("shade").addEventListener("click", () => showSide(false));
  narrow.addEventListener("change", () => showSide(false));
}

export function isSideShown() {
  return document.body.classList.contains("side-open");
}

/** Shows the list over a narrow page. Then nothing behind it can be reached; once it is closed, the focus is where it was opened. */
export function showSide(isOpen) {
  const isOver = isOpen && narrow.matches;
  const hadFocus = at("side").contains(document.activeElement);
  for (const behind of document.querySelectorAll("main, #settings, .skip-link")) behind.inert = isOver;
  if (!isOpen && hadFocus && narrow.matches) at("side-open").focus();
  document.body.classList.toggle("side-open", isOpen);
  at("shade").hidden = !isOpen;
  at("side-open").setAttribute("aria-expanded", String(isOpen));
}
