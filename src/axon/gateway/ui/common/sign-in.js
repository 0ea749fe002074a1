// The form to sign in: a key, or a one-time code in the address. The key leaves the field as soon as it is sent. Before this
// script is there, the form cannot be sent: the browser would write what is in its field into the address.

import { signIn, takeCode } from "./api.js";

const WHY = new Map(Object.entries({
  code: "That link was used before, or is older than a minute. Sign in with your key instead.",
  ended: "You were signed out: the session was over, or its key has ended.",
  oidc: "Your account is known, and nothing on this server was granted to it. Ask whoever runs it.",
  issuer: "Signing in with your organisation did not work. Try again, or sign in with a key.",
}));
const PAGES = new Set(["", "console"]);

const form = document.getElementById("form");
const field = document.getElementById("key");
const go = document.getElementById("go");
const problem = document.getElementById("problem");
const asked = new URLSearchParams(location.search);

say("why", WHY.get(asked.get("why")) || "");
form.addEventListener("submit", (event) => {
  event.preventDefault();
  const key = field.value.trim();
  field.value = "";
  enter({ key });
});
const code = takeCode();
if (code) enter({ code });
else {
  go.disabled = false;
  field.focus();
}
offerIssuer();

async function enter(proof) {
  go.disabled = true;
  say("problem", "");
  try {
    await signIn(proof);
    const page = asked.get("to") || "";
    const view = location.hash.startsWith("#/") ? location.hash : "";
    location.replace(PAGES.has(page) && page ? `${page}${view}` : "./");
  } catch (error) {
    say("problem", error.message);
    field.focus();
  } finally {
    go.disabled = false;
  }
}

async function offerIssuer() {
  const response = await fetch("ui/sign-in", { cache: "no-store" }).catch(() => null);
  const ways = response?.ok ? await response.json() : {};
  if (!ways.issuer) return;
  document.getElementById("other").hidden = false;
  const link = document.getElementById("issuer");
  link.textContent = `Sign in with ${ways.issuer}`;
  link.search = new URLSearchParams({ to: asked.get("to") || "" });
}

function say(id, text) {
  const place = document.getElementById(id);
  place.textContent = text;
  place.hidden = !text;
}
