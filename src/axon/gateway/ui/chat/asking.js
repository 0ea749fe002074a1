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
  const turn = {
    id: `local-${newName()}`,
    isLocal: true,
    status: "in_progress",
    model: request.model,
    input,
    metadata,
    conversation: on.fields.conversation ? { id: conversation?.id || "" } : null,
    previous_response_id: on.fields.previous_response_id || null,
    text: request.text || {},
    begins,
    isTyped,
  };
  const body = { ...request, ...on.fields, input, metadata, stream: true, background: true, store: true };
  const headers = { ...on.headers, "idempotency-key": newName(), "x-axon-ledger": "true" };
  return { turn, body, headers };
}
