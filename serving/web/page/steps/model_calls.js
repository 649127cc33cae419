// Recorded model calls: what was sent, and what came back.

import { el } from "../dom.js";
import { longJson } from "../json.js";
import { costText } from "../usage.js";
import { messageList } from "./seen.js";
import { placeText, secondsText } from "./words.js";

const NUMBER = new Intl.NumberFormat("en");

/** Return an element for each recorded model call. */
export function modelCalls(calls) {
  return calls.map((call) =>
    el(
      "article",
      { class: "model-call", "aria-label": `Call of ${call.model}` },
      el("p", { class: "muted" }, factsOf(call)),
      call.error ? problem(`The call failed. ${call.error.type}: ${call.error.message}`) : null,
      call.cut ? problem("The call was cut off.") : null,
      messageList(call.messages, "Messages that were sent"),
      response(call),
      details("Tools and parameters", {
        tools: call.tools,
        parameters: call.params,
        ...(call.output_schema ? { output_schema: call.output_schema } : {}),
        ...(call.attempts.length ? { attempts: call.attempts } : {}),
        request_hash: call.request_hash,
      }),
    ),
  );
}

function factsOf({ model, path, state, seconds, usage, finish_reason: finish }) {
  const place = placeText(state === null ? null : { path, state });
  const tokens = usage
    ? `${NUMBER.format(usage.input_tokens)} tokens in, ${NUMBER.format(usage.output_tokens)} out`
    : null;
  const cost = usage?.cost ? costText(usage.cost) : null;
  return [model, place, secondsText(seconds), tokens, cost, finish].filter(Boolean).join(" · ");
}

/** Show what the model returned, as the message that it is. */
function response({ thoughts, text, actions }) {
  const parts = [];
  if (thoughts) parts.push({ role: "Thought", content: thoughts });
  if (text || actions.length)
    parts.push({ role: "Response", content: text, tool_calls: actions });
  return parts.length ? messageList(parts, "What the model returned") : null;
}

function problem(text) {
  return el("div", { class: "note failed" }, el("span", {}, text));
}

function details(title, value) {
  const label = { class: "block", tabindex: "0", role: "group", "aria-label": title };
  return el("details", {}, el("summary", {}, title), el("pre", label, longJson(value)));
}
