// Two sessions beside each other: where they part, and how their states differ.

import { chatAddress } from "../address.js";
import { el } from "../dom.js";
import { longJson } from "../json.js";
import { messageList } from "./seen.js";
import { section } from "./step_view.js";
import { countText } from "./words.js";

/** Return the elements that show a difference. */
export function comparisonElements({ common, sides, state }) {
  const parted = sides.some(({ messages }) => messages.length > 0);
  const text = parted
    ? `${countText(common, "message")} in common. From there on:`
    : `Both have the same ${countText(common, "message")}.`;
  return [
    el("h3", { tabindex: "-1" }, "Comparison"),
    el("p", { class: "muted" }, text),
    el("div", { class: "sides" }, ...sides.map((each, at) => side(each, namesOf(sides)[at]))),
    stateTable(sides, state),
  ].filter((element) => element !== null);
}

/** Return the names of both: their titles may be the same. */
function namesOf([, { id, title }]) {
  return ["This chat", title || id];
}

function side({ id, messages }, name) {
  return el(
    "div",
    { class: "side" },
    el("h4", {}, el("a", { href: chatAddress(id) }, name)),
    messages.length
      ? messageList(messages, `Messages of ${name}`)
      : el("p", { class: "muted" }, "Nothing more"),
  );
}

function stateTable(sides, state) {
  if (state.length === 0) return null;
  const heads = ["Name", ...namesOf(sides)];
  const rows = state.map(({ name, values }) =>
    el("tr", {}, el("th", { scope: "row" }, name), ...values.map((value) => el("td", {}, text(value)))),
  );
  const table = el(
    "table",
    { class: "changes" },
    el("thead", {}, el("tr", {}, ...heads.map((head) => el("th", { scope: "col" }, head)))),
    el("tbody", {}, ...rows),
  );
  const box = { class: "table", tabindex: "0", role: "group", "aria-label": "Differing values" };
  return section("State of the run", el("div", box, table));
}

function text(value) {
  if (value === null) return "–";
  return typeof value === "string" ? value : longJson(value);
}
