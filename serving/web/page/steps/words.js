// The steps of a run in words.

import { costText } from "../usage.js";

const NUMBER = new Intl.NumberFormat("en");
const TIME = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const ENDS = {
  done: "The run is done",
  failed: "The run failed",
  stopped: "The run was stopped",
  cancelled: "The run was cancelled",
  timeout: "The run reached its limit of time",
  budget: "The budget was used up",
  stuck: "The run repeated itself and was ended",
};

/** Return the name of a state with the nets around it. */
export function placeText(place) {
  return place === null ? "" : [...place.path, place.state].join(" › ");
}

/** Return the title of a part of a session. */
export function titleOf(part) {
  const ran = placeText(part.ran);
  const next = placeText(part.next);
  switch (part.kind) {
    case "earlier":
      return "Before the steps that are kept";
    case "begin":
      return "A run begins";
    case "resume":
      return "The run is resumed";
    case "wait":
      return "The run waits for a person";
    case "end":
      return ENDS[part.stop_reason] ?? `The run ended: ${part.stop_reason}`;
    case "open":
      return ran ? `${ran}, under way` : "After the last step";
    default:
      return ran || next || "A step";
  }
}

/** Return where a part leads, such as "→ ACTION"; empty if nothing comes next. */
export function nextText(part) {
  const next = placeText(part.next);
  if (part.kind === "step" && next && next !== placeText(part.ran)) return `→ ${next}`;
  if (["end", "wait"].includes(part.kind) && part.stop_reason !== "done" && part.ran)
    return `in ${placeText(part.ran)}`;
  return "";
}

/** Return what a part has taken: time, tokens and cost. */
export function spentText({ seconds, spent }) {
  const tokens = (spent.input_tokens ?? 0) + (spent.output_tokens ?? 0);
  const parts = [];
  if (seconds !== null) parts.push(secondsText(seconds));
  if (tokens) parts.push(`${NUMBER.format(tokens)} tokens`);
  if (spent.cost) parts.push(costText(spent.cost));
  return parts.join(" · ");
}

/** Return a duration. */
export function secondsText(seconds) {
  return seconds < 0.995 ? `${Math.round(seconds * 1000)} ms` : `${seconds.toFixed(1)} s`;
}

/** Return a moment in the zone and the language of the reader. */
export function timeText(moment) {
  const date = new Date(moment ?? Number.NaN);
  return Number.isNaN(date.getTime()) ? "" : TIME.format(date);
}

/** Return a number of things. */
export function countText(count, noun) {
  return `${NUMBER.format(count)} ${noun}${count === 1 ? "" : "s"}`;
}
