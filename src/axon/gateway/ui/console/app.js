// The console's frame: who is signed in, the list of views, the hash router. Knows no view's content.

import { session, signOut, takePlace } from "../common/api.js";
import { make, toast } from "../common/dialog.js";
import { setTheme, theme } from "../common/theme.js";
import { setPlace } from "./commands.js";
import { Visit } from "./visit.js";

/** The views by their name in the address; each module has open(visit). */
const ROOMS = [
  ["Now", [
    ["overview", "Overview"],
    ["fleet", "Fleet"],
    ["streams", "Streams & queues"],
    ["requests", "Requests"],
    ["logs", "Logs"],
    ["alerts", "Alerts"],
  ]],
  ["Serving", [["models", "Models"]]],
  ["Who", [
    ["tenants", "Tenants"],
    ["plans", "Plans"],
    ["keys", "Keys"],
    ["usage", "Usage"],
  ]],
  ["Server", [
    ["settings", "Settings"],
    ["audit", "Audit trail"],
  ]],
];
const TITLES = new Map(ROOMS.flatMap(([, rooms]) => rooms));
const VIEW = /^#\/[\w.~%!'()*:@,;=&+$/?-]*$/;
const NEEDED = "axon keys create --tenant ops --scope admin";

let visit = null;

async function begin() {
  setUpBar();
  const who = await session();
  const place = takePlace(); // an issuer's page lies between the form and this one, and no part behind a # comes through it
  if (!location.hash && VIEW.test(place)) history.replaceState(null, "", place);
  document.getElementById("who").textContent = `${who.tenant} · ${who.key}`;
  if (!who.scopes.includes("admin")) return showForbidden(who);
  setPlace(who.cli, new URL(".", location.href).href.replace(/\/$/, ""));
  fillRooms();
  addEventListener("hashchange", route);
  await route();
}

function setUpBar() {
  const menu = document.getElementById("menu");
  menu.addEventListener("click", () => setMenu(menu.getAttribute("aria-expanded") !== "true"));
  const select = document.getElementById("theme");
  select.value = theme();
  select.addEventListener("change", () => setTheme(select.value));
  document.getElementById("sign-out").addEventListener("click", () => signOut().catch((error) => toast(error.message, "bad")));
}

function setMenu(isOpen) {
  document.getElementById("menu").setAttribute("aria-expanded", String(isOpen));
  document.getElementById("rooms").classList.toggle("open", isOpen);
}

function fillRooms() {
  const groups = ROOMS.map(([title, rooms]) => {
    const id = `rooms-${title.toLowerCase()}`;
    const links = rooms.map(([name, label]) => make("li", {}, make("a", { href: `#/${name}`, "data-room": name }, label)));
    return make("section", { "aria-labelledby": id }, make("h2", { id }, title), make("ul", {}, ...links));
  });
  document.getElementById("rooms").replaceChildren(...groups);
}

/** A part of the address as text; as it stands where it is malformed. */
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

async function route() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, ...rest] = (path || "overview").split("/").map(decoded);
  if (location.hash === "#view") {
    // The link that skips to the content; the address stays that of the view.
    history.replaceState(history.state, "", visit?.address ?? "#/overview");
    document.getElementById("view").focus();
    return visit ? undefined : route();
  }
  visit?.leave();
  setMenu(false);
  const place = document.getElementById("view");
  const room = TITLES.has(name) ? name : "overview";
  mark(room);
  const now = (visit = new Visit({ room, parts: rest, query: new URLSearchParams(query || ""), place }));
  document.title = `${[...rest, TITLES.get(room)].join(" · ")} · Axon console`;
  place.setAttribute("aria-busy", "true");
  try {
    const view = await import(`./${room}.js`);
    if (now.isLeft) return;
    await view.open(now);
  } catch (error) {
    if (!now.isLeft) now.showError(error);
  }
  if (!now.isLeft) place.removeAttribute("aria-busy");
}

function mark(room) {
  for (const link of document.querySelectorAll("#rooms a")) {
    if (link.dataset.room === room) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

function showForbidden(who) {
  const view = document.getElementById("view");
  view.removeAttribute("aria-busy");
  view.replaceChildren(
    make("h1", {}, "This key may not administer"),
    make("p", {}, `You are signed in with the key ${who.key} of the tenant ${who.tenant}, which has the scopes ${who.scopes.join(" and ") || "none"}. The console needs the scope admin.`),
    make("p", {}, "On the machine that runs the server, make a key that has it, then sign out and sign in with that key. If the server was started with --data-dir, --config or --store, add the same here:"),
    make("pre", { tabIndex: 0 }, NEEDED),
    make("p", {}, make("button", { class: "primary", type: "button", onclick: () => signOut().catch((error) => toast(error.message, "bad")) }, "Sign in with another key")),
  );
}

begin().catch((error) => {
  document.getElementById("view").replaceChildren(make("p", { class: "notice bad", role: "alert" }, error.message));
});
