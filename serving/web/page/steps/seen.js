// Messages as a model sees them: who wrote each, its text, its calls.

import { el } from "../dom.js";
import { shortJson } from "../json.js";
import { attachmentList } from "../attachments.js";

const ROLES = { system: "System", user: "User", assistant: "Assistant", tool: "Result" };

/** Return a list of messages, as they were written. */
export function messageList(messages, label) {
  return el("ol", { class: "seen", "aria-label": label }, ...messages.map(item));
}

/** Return who wrote a message. */
export function authorOf(message) {
  const role = message.is_error ? "Error" : (ROLES[message.role] ?? message.role);
  return message.role === "tool" && message.name ? `${role} of ${message.name}` : role;
}

function item(message) {
  const calls = (message.tool_calls ?? []).map((call) =>
    el("div", { class: "seen-call" }, `${call.name}(${shortJson(call.unparsed ?? call.args)})`),
  );
  const text = message.content
    ? el("div", { class: "plain", dir: "auto" }, message.content)
    : null;
  return el(
    "li",
    { "data-role": message.role, "data-error": message.is_error === true },
    el("span", { class: "seen-role" }, authorOf(message)),
    text,
    ...calls,
    attachmentList(message.attachments ?? []),
  );
}
