// The part of the page's address behind "#": which session is open, and what is shown of it.

const STEPS = /^([^/]+)\/steps(?:\/(\d+|now))?$/;
const COMPARE = /^([^/]+)\/compare\/([^/]+)$/;

/**
 * Return what an address names: `session` (null for a new chat), `view` ("chat", "steps" or "compare"),
 * `step` (a number as text, "now" or null) and `other` (the session to compare with).
 */
export function readAddress(hash) {
  const rest = /^#\/(.+)$/.exec(hash)?.[1];
  const found = { session: null, view: "chat", step: null, other: null };
  if (rest === undefined) return found;
  const steps = STEPS.exec(rest);
  if (steps !== null)
    return { ...found, session: decoded(steps[1]), view: "steps", step: steps[2] ?? null };
  const compare = COMPARE.exec(rest);
  if (compare !== null)
    return { ...found, session: decoded(compare[1]), view: "compare", other: decoded(compare[2]) };
  return { ...found, session: decoded(rest) };
}

/** Return the address of a chat. */
export function chatAddress(session) {
  return `#/${encodeURIComponent(session)}`;
}

/** Return the address of the steps of a session, or of one of them. */
export function stepsAddress(session, step = null) {
  return `${chatAddress(session)}/steps${step === null ? "" : `/${step}`}`;
}

/** Return the address of the comparison of two sessions. */
export function compareAddress(session, other) {
  return `${chatAddress(session)}/compare/${encodeURIComponent(other)}`;
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
