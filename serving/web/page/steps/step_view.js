// One step: what happened, what the model saw, the net, what changed in the memory.

import { stepsAddress } from "../address.js";
import { button, el, newId } from "../dom.js";
import { longJson } from "../json.js";
import { history } from "../messages.js";
import { NetPicture } from "../net.js";
import { ToolCard, readable } from "../tool_card.js";
import { modelCalls } from "./model_calls.js";
import { messageList } from "./seen.js";
import { nextText, placeText, secondsText, spentText, timeText, titleOf } from "./words.js";

const UNTRACED =
  "No model call of this step was recorded. This is what the memory shows a model as of the " +
  "beginning of the step. Brain(…, trace=True) records what is sent.";

/**
 * Return the elements that show a step.
 *
 * @param {string} session
 * @param {Object} step The details of the step.
 * @param {Object} seen What a model saw in it.
 * @param {string} picture The net as SVG.
 * @param {() => void} onFork Called when a person wants to go on from here.
 */
export function stepElements(session, step, seen, picture, onFork) {
  const cards = new Map();
  const called = calls(step, cards);
  const said = messages(step, cards);
  for (const { id, seconds } of step.calls)
    if (seconds !== null) cards.get(id)?.body.append(took(seconds));
  return [
    head(session, step, onFork),
    failure(step),
    waits(step),
    called,
    said,
    branches(step),
    whatWasSeen(step, seen),
    net(step, picture),
    changes(step),
  ].filter((element) => element !== null);
}

function head(session, step, onFork) {
  const title = el("h3", { tabindex: "-1" }, `${titleOf(step)} ${nextText(step)}`.trim());
  const facts = [
    step.number === null ? null : `Step ${step.number}`,
    timeText(step.time),
    spentText(step),
    step.run_id,
  ];
  const links = el(
    "div",
    { class: "buttons" },
    step.number === null ? null : button("Fork from here…", onFork, { class: "primary" }),
    step.previous === null
      ? null
      : el(
          "a",
          { class: "as-button", href: stepsAddress(session, step.previous) },
          "Previous step",
        ),
  );
  return el(
    "div",
    { class: "step-head" },
    title,
    el("p", { class: "muted" }, facts.filter(Boolean).join(" · ")),
    links,
  );
}

function failure({ kind, failure: why, error, ran, next }) {
  if (kind === "end" && why !== null)
    return el(
      "div",
      { class: "note failed" },
      el("span", {}, `The run failed in ${placeText(ran) || placeText(next)}. ${why}`),
    );
  if (error === null) return null;
  const text = `${placeText(ran)} failed: ${error}. The run continues with ${placeText(next)}.`;
  return el("div", { class: "note warning" }, el("span", {}, text));
}

function waits({ waits_for: asked }) {
  if (asked === null) return null;
  const texts = [...asked.calls.map((name) => `${name} needs an approval.`), ...asked.questions];
  return el("div", { class: "note warning" }, el("span", {}, texts.join(" ")));
}

/** Show the calls whose request is not among the messages of the step. */
function calls(step, cards) {
  const asked = new Set(step.messages.flatMap((message) => message.tool_calls.map(({ id }) => id)));
  const shown = step.calls.filter(({ id }) => !asked.has(id));
  if (shown.length === 0) return null;
  return section(
    "Calls",
    ...shown.map((call) => {
      const card = new ToolCard({ id: call.id, name: call.name, args: call.args }, { open: true });
      cards.set(call.id, card);
      if (call.state === "begun") card.start();
      else if (call.result !== null)
        card.finish({ content: call.result, is_error: call.state === "failed", attachments: [] });
      return card.element;
    }),
  );
}

function took(seconds) {
  return el("p", { class: "muted" }, `Took ${secondsText(seconds)}`);
}

function messages(step, cards) {
  const shown = history(step.messages, cards);
  const undone = step.undone.length
    ? el(
        "details",
        { class: "thought" },
        el("summary", {}, "Removed, as the step was interrupted and ran again"),
        messageList(step.undone, "Removed messages"),
      )
    : null;
  const removed = step.removed.map(({ how, messages: count }) =>
    el("p", { class: "muted" }, count === null ? `The memory was ${how}` : `${count} ${how}`),
  );
  if (shown.length === 0 && undone === null && removed.length === 0) return null;
  return section("Messages added", ...shown, undone, ...removed);
}

function branches({ branches: found }) {
  if (found.length === 0) return null;
  return section("Branches", ...found.map(branch));
}

function branch({ name, result, status, messages: said }) {
  const summary = status === "running" ? `${name}: under way` : name;
  return el(
    "details",
    { class: "branch" },
    el("summary", {}, summary),
    said.length ? messageList(said, `Messages of ${name}`) : null,
    result ? pre(readable(result), `Result of ${name}`) : null,
  );
}

function whatWasSeen({ spent }, { model_calls: recorded, context }) {
  if (recorded.length > 0) return section("What the model saw", ...modelCalls(recorded));
  if (context === null) return null;
  const asked = spent.requests !== 0;
  return section(
    asked ? "What the model saw" : "Memory before the step",
    el("p", { class: "muted" }, asked ? UNTRACED : "No model was asked in this step."),
    context.length
      ? messageList(context, "Messages that the memory shows")
      : el("p", { class: "muted" }, "No messages"),
  );
}

/** Draw the net with the way that the run had taken, and the state of the step lit. */
function net(step, picture) {
  const place = el("div", {
    class: "net-picture",
    role: "group",
    "aria-label": "Way through the net",
    tabindex: "0",
  });
  const current = el("p", { class: "muted" });
  const drawn = new NetPicture(place, current);
  drawn.load(picture);
  const lit = step.ran ?? step.next;
  if (lit !== null) drawn.enter(lit);
  current.textContent = step.ran ? `This step ran ${placeText(step.ran)}.` : "";
  return section("Net", place, current);
}

function changes({ control, values, next_calls: next }) {
  const rows = [
    ...control.map(({ name, before, after }) => row(name, before, after)),
    ...values.map(({ name, value }) => row(name, undefined, value)),
  ];
  const calls = next.map(({ name, args, unparsed }) =>
    el("p", { class: "mono" }, `Runs next: ${name}(${JSON.stringify(unparsed ?? args)})`),
  );
  if (rows.length === 0 && calls.length === 0) return null;
  const table = el(
    "table",
    { class: "changes" },
    el(
      "thead",
      {},
      el(
        "tr",
        {},
        el("th", { scope: "col" }, "Name"),
        el("th", { scope: "col" }, "Before"),
        el("th", { scope: "col" }, "After"),
      ),
    ),
    el("tbody", {}, ...rows),
  );
  const box = { class: "table", tabindex: "0", role: "group", "aria-label": "Changed values" };
  return section("State of the run", ...calls, rows.length ? el("div", box, table) : null);
}

function row(name, before, after) {
  return el(
    "tr",
    {},
    el("th", { scope: "row" }, name),
    el("td", {}, valueText(before)),
    el("td", {}, valueText(after)),
  );
}

function valueText(value) {
  if (value === undefined) return "";
  if (value === null) return "–";
  return typeof value === "string" ? value : longJson(value);
}

function pre(text, label) {
  return el("pre", { class: "block", tabindex: "0", role: "group", "aria-label": label }, text);
}

/** Return a part of the page with a title. */
export function section(title, ...children) {
  const id = newId("section");
  return el(
    "section",
    { class: "step-section", "aria-labelledby": id },
    el("h4", { id }, title),
    ...children,
  );
}
