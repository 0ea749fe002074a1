// What the page shows where there are no turns: a first question to try, or why nobody may ask. Sends nothing.

import { make } from "../common/dialog.js";

const TRIES = ["Explain how a CPU cache works, with a small diagram.", "Write a Python function that checks for a palindrome.", "Compare three ways to store passwords in a table."];

/** Greets, and offers questions; `onTry` is told the one that somebody takes, and all of them. */
export function welcome(onTry) {
  const tries = TRIES.map((text) => {
    const button = make("button", { type: "button" }, text);
    button.addEventListener("click", () => onTry(text, TRIES));
    return button;
  });
  return make(
    "div",
    { class: "empty" },
    make("h2", {}, "What would you like to know?"),
    make("p", { class: "hint" }, "Conversations are kept by this server, and go on even if you close the page in the middle of an answer."),
    make("div", { class: "choices" }, ...tries),
  );
}

/** Says what the key lacks, and leads on. */
export function unwelcome({ key, scopes }, onLeave) {
  const another = make("button", { class: "primary", type: "button" }, "Sign in with another key");
  another.addEventListener("click", onLeave);
  return make(
    "div",
    { class: "empty" },
    make("h2", {}, "This key may not ask"),
    make("p", {}, `The key ${key} has the scopes ${scopes.join(" and ") || "none"}. Asking needs the scope inference, reading conversations the scope read.`),
    scopes.includes("admin") && make("p", {}, make("a", { href: "console#/keys" }, "Make a key with them in the console")),
    make("p", {}, another),
  );
}
