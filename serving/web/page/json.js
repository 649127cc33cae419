// JSON without loss: a number that JavaScript cannot hold keeps its digits, and characters that cannot be
// seen are written as escapes, so that a person approves what is there.

const LONG_NUMBER = /\d{16}/;
const UNSEEN = /(?![\u200c\u200d])\p{Cf}/gu; // all but the joiners of some scripts and of emojis
const INDENT_LIMIT = 10; // times as long as on one line

/** Return the value of `text`. */
export function parseJson(text) {
  return LONG_NUMBER.test(text) ? JSON.parse(text, exact) : JSON.parse(text);
}

function exact(key, value, context) {
  if (typeof value !== "number" || Number.isSafeInteger(value)) return value;
  const source = context?.source; // older browsers do not tell it
  return source && source !== String(value) && JSON.rawJSON ? JSON.rawJSON(source) : value;
}

/** Return `value` on one line. */
export function shortJson(value) {
  return visible(JSON.stringify(value));
}

/** Return `value` with line breaks; on one line if it is so deep that its indentation would fill pages. */
export function longJson(value) {
  const short = JSON.stringify(value);
  const long = JSON.stringify(value, null, 2);
  return visible(long.length > 1000 && long.length > INDENT_LIMIT * short.length ? short : long);
}

function visible(json) {
  return json.replace(UNSEEN, (character) => character.split("").map(escaped).join(""));
}

function escaped(unit) {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
