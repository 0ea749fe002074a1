// The responses of a conversation, as the server keeps them: reads and cancels them. Touches no page.

import { api } from "../common/api.js";

const PAGE = 100;

/** Resolves to all responses of a conversation, the first one first. */
export async function responsesOf(conversation) {
  const found = [];
  for (let after = ""; ; ) {
    const page = await api("GET", `v1/conversations/${conversation}/responses?limit=${PAGE}${after && `&after=${after}`}`);
    found.push(...page.data);
    if (!page.has_more) return found;
    after = page.last_id;
  }
}

/** Stops a response at the server; resolves to what became of it. */
export function cancel(id) {
  return api("POST", `v1/responses/${id}/cancel`);
}
