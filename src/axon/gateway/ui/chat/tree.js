// The tree of a conversation: pure functions of the responses that the server lists. Touches no page.
//
// A response goes on from another one, from the turn before it in the conversation, or from the start. An edit stands
// beside what it edits. What was stopped or failed is not remembered by the model, but stays where it was asked.

const REMEMBERED = new Set(["completed", "incomplete"]);
const RUNNING = new Set(["queued", "in_progress"]);

/** Whether later answers build on this response. */
export const isRemembered = (turn) => REMEMBERED.has(turn.status);
export const isRunning = (turn) => RUNNING.has(turn.status);
/** Whether the model has what a turn was asked with, or may have it yet. */
export const isTaken = (turn) => isRunning(turn) || isRemembered(turn);

/** Returns {parents, children}: each response's parent by its id, and ids of children by the parent's id ("" is the start). */
export function treeOf(turns) {
  const parents = new Map();
  const children = new Map([["", []]]);
  let last = "";
  for (const turn of turns) {
    let parent;
    if (turn.metadata?.edits && parents.has(turn.metadata.edits)) parent = parents.get(turn.metadata.edits);
    else if (turn.conversation) parent = last;
    else parent = stopped(turn.previous_response_id || "", turns, children, parents);
    if (turn.conversation) last = turn.id;
    if (parent !== "" && !parents.has(parent)) parent = "";
    parents.set(turn.id, parent);
    children.set(turn.id, []);
    children.get(parent).push(turn.id);
  }
  return { parents, children };
}

/** Returns where a turn that goes on from `from` is shown: after a stopped one that was asked at the same place. */
function stopped(from, turns, children, parents) {
  if (from !== "" && !parents.has(from)) return "";
  let place = from;
  for (;;) {
    const next = (children.get(place) || []).at(-1);
    const turn = next && turns.find((each) => each.id === next);
    if (!turn || turn.conversation || isRemembered(turn) || isRunning(turn) || turn.metadata?.edits) return place;
    place = next;
  }
}

/** Returns the ids from the start to a leaf: at each fork the chosen child, else the newest. */
export function pathOf(tree, chosen) {
  const path = [];
  let at = "";
  for (;;) {
    const there = tree.children.get(at) || [];
    if (!there.length) return path;
    at = there.includes(chosen.get(at)) ? chosen.get(at) : there.at(-1);
    path.push(at);
  }
}

/** Returns {ids, index}: the versions of a turn, itself among them. */
export function versionsOf(tree, id) {
  const ids = tree.children.get(tree.parents.get(id)) || [id];
  return { ids, index: ids.indexOf(id) };
}

/** Returns the fields and headers that make a new response go on after a turn ("" is the start). */
export function goingOn(tree, turns, conversation, after) {
  const known = new Map(turns.map((turn) => [turn.id, turn]));
  const main = turns.filter((turn) => turn.conversation).at(-1)?.id || "";
  if (after === main && !(after === "" && turns.length)) return { fields: { conversation }, headers: {} };
  let at = after;
  while (at !== "" && !isRemembered(known.get(at))) at = tree.parents.get(at);
  if (at !== "") return { fields: { previous_response_id: at }, headers: {} };
  return { fields: {}, headers: { "x-axon-branch-of": conversation } };
}
