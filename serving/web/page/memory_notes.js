// What the memory does during a run: a small line, which opens to the details.

import { chatAddress } from "./address.js";
import { el } from "./dom.js";
import { counted } from "./usage.js";

/** By kind of event: the line, and the details as a list of texts and things that have an ID. */
const TOLD = {
  recalled: ({ items, tokens, query }) => {
    const of = (what) => items.filter((item) => item.what === what).length;
    const found = ["fact", "message"].filter(of).map((what) => counted(of(what), what));
    return [
      `Recalled ${found.join(" and ")}: ${counted(tokens, "token")}.`,
      [`Looked for: ${query}`, ...items],
    ];
  },
  trimmed: ({ ids }) => [`${counted(ids.length, "message")} left the window.`, ids.map(message)],
  compacted: ({ count, tokens_before: before, tokens_after: after, level }) => [
    `Summarised ${counted(count, "message")}: ${counted(before, "token")} became ${counted(after, "token")}.`,
    [`The summary itself was summarised ${counted(level, "time")}.`],
  ],
  escalated: ({ before, now, tokens, max_tokens: most }) => [
    `More than ${counted(most, "token")}: a ${now} is shown from now on.`,
    [`The conversation had ${counted(tokens, "token")}. Before, the model saw: ${before}.`],
  ],
  learned: ({ added, replaced, refused, read, calls }) => {
    const changed = replaced.length ? `, ${replaced.length} replaced` : "";
    const because = Object.entries(refused).map(([why, count]) => `Not taken: ${count} (${why})`);
    return [
      `Learned ${counted(added.length, "fact")}${changed} from ${counted(read, "message")}.`,
      [...added.map(fact), ...because, `It took ${counted(calls, "model call")}.`],
    ];
  },
};

const message = (id) => ({ id, what: "message" });
const fact = (id) => ({ id, what: "fact" });

/**
 * Return the line of an event; null for one that is not of a memory.
 *
 * @param {Object} event
 * @param {(item: {id: string, what: string}) => Promise<string>} textOf Finds the text of a message or a fact.
 */
export function memoryNote(event, textOf) {
  if (!(event.kind in TOLD)) return null;
  const [line, details] = TOLD[event.kind](event);
  const list = el("ul");
  const note = el("details", { class: "memory-note" }, el("summary", {}, line), list);
  const open = () => list.append(...details.map((detail) => detailItem(detail, textOf)));
  note.addEventListener("toggle", open, { once: true });
  return note;
}

function detailItem(detail, textOf) {
  if (typeof detail === "string") return el("li", { dir: "auto" }, detail);
  const text = el("span", { dir: "auto" }, "…");
  textOf(detail).then(
    (found) => (text.textContent = found),
    () => (text.textContent = `A ${detail.what} that is not there any more`),
  );
  const from = detail.session
    ? el("a", { href: chatAddress(detail.session) }, "Open its chat")
    : null;
  const fits = detail.score == null ? null : ` (${detail.score.toFixed(2)}) `;
  return el("li", {}, text, fits, from);
}
