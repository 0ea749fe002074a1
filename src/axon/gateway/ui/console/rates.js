// Rates and latencies out of looks at the server, as `axon top` makes them. Pure; knows no element.

import { sum } from "./chart.js";

const KEPT = 40;

/** Keeps the last looks and compares the newest with one of about half a minute ago. */
export class Looks {
  #looks = [];

  add(look) {
    this.#looks = [...this.#looks.slice(-KEPT + 1), look];
  }

  get last() {
    return this.#looks.at(-1);
  }

  /** The series of a figure over each two looks that follow each other. */
  series(of) {
    return this.#looks.slice(1).map((look, index) => of(this.#looks[index], look) ?? 0);
  }

  /** A figure of the newest look against the first one that is kept. */
  over(of, back = 5) {
    if (this.#looks.length < 2) return null;
    return of(this.#looks[Math.max(0, this.#looks.length - 1 - back)], this.last);
  }
}

export function answerTokens(before, after) {
  return perSecond(before, after, (worker) => worker.answer_tokens);
}

export function promptTokens(before, after) {
  return perSecond(before, after, (worker) => worker.prompt_tokens);
}

export function requests(before, after) {
  return gatewayRate(before, after, (gateway) => sum(Object.values(gateway.requests)));
}

export function refusals(before, after) {
  return gatewayRate(before, after, (gateway) => gateway.rejected);
}

/** Tokens a second of one worker; null until it was seen twice in one life. */
export function workerRate(before, after, { name, incarnation }) {
  const [old, now] = [before, after].map((look) => look.workers.find((each) => each.name === name && each.incarnation === incarnation));
  if (!old || !now || now.at <= old.at) return null;
  return (now.answer_tokens - old.answer_tokens) / (now.at - old.at);
}

/** The seconds that `share` of the workers' durations since the first look do not exceed. */
export function latency(before, after, field, share) {
  const counts = [];
  for (const now of after.workers) {
    const old = before.workers.find((each) => each.name === now.name && each.incarnation === now.incarnation);
    now[field].forEach((count, index) => {
      counts[index] = (counts[index] || 0) + count - (old?.[field][index] || 0);
    });
  }
  return quantile(counts, share, after.bounds);
}

export function quantile(counts, share, bounds) {
  const all = sum(counts.map((each) => each || 0));
  if (all <= 0) return null;
  let reached = 0;
  for (let index = 0; index < counts.length; index += 1) {
    const here = counts[index] || 0;
    reached += here;
    if (here && reached >= share * all) {
      if (index >= bounds.length) return bounds.at(-1);
      const low = index ? bounds[index - 1] : 0;
      return low + (bounds[index] - low) * Math.min(1, Math.max(0, (share * all - (reached - here)) / here));
    }
  }
  return bounds.at(-1);
}

function perSecond(before, after, of) {
  let found = null;
  for (const now of after.workers) {
    const old = before.workers.find((each) => each.name === now.name && each.incarnation === now.incarnation);
    if (old && now.at > old.at) found = (found || 0) + (of(now) - of(old)) / (now.at - old.at);
  }
  return found;
}

function gatewayRate(before, after, of) {
  if (before.gateway.name !== after.gateway.name || after.at <= before.at) return null;
  return (of(after.gateway) - of(before.gateway)) / (after.at - before.at);
}
