// What a question is sent as: the request's body and headers, and the turn that stands for it until the server has named
// one. Touches no page, sends nothing.

import { filePart } from "./items.js";
import { newName } from "./stream.js";
import { goingOn } from "./tree.js";

/**
 * Returns {turn, body, headers} of a question, {text, files, results, after, edits, isTyped}. `request` has the model and the
 * settings. The question begins the conversation `begins`, or, where that is null, goes on in {conversation, tree, turns}.
 */
export function prepare({ text, files, results, after, edits, isTyped }, request, begins, { conversation, tree, turns }) {
  const input = results || [{ type: "message", role: "user", content: [{ type: "input_text", text }, ...files.map((file) => filePart(file.name, file.text))] }];
  const known = turns.filter((turn) => !turn.isLocal);
  const on = begins ? { fields: { conversation: begins }, headers: {} } : goingOn(tree, known, conversation.id, after);
  const metadata = { ...request.metadata, ...(edits ? { edits } : {}) };
  const body = { ...request, ...on.fields, input, metadata, stream: true, background: true, store: true };
  const headers = { ...on.headers, "idempotency-key": newName(), "x-axon-ledger": "true" };
  return { turn: turnOf(body, isTyped), body, headers };
}

/** Returns the results for a turn's calls as the input that goes on from it; null while one has none. */
export function resultsOf({ output, results }) {
  const calls = output.filter((item) => item.type === "function_call");
  if (calls.some((item) => !(item.call_id in results))) return null;
  return calls.map((item) => ({ type: "function_call_output", call_id: item.call_id, output: results[item.call_id] }));
}

/** Returns the turn that stands for a request of this body until the server has named one. */
export function turnOf(body, isTyped) {
  const { model, input, metadata, conversation, previous_response_id = null, text = {} } = body;
  const begins = typeof conversation === "object" ? conversation : null; // one that is there is named by its id
  const known = { model, input, metadata, previous_response_id, text, begins, isTyped };
  return { id: `local-${newName()}`, isLocal: true, status: "in_progress", conversation: conversation ? { id: begins ? "" : conversation } : null, ...known };
}
