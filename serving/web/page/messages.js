// Messages as they are recorded: what a person said, what the agent said, results of tools.

import { attachmentList } from "./attachments.js";
import { el } from "./dom.js";
import { markdown } from "./markdown/view.js";
import { ToolCard } from "./tool_card.js";

/** What to say of an answer by the finish reason of its model response. */
export const CUT_OFF = new Map([
  ["length", "This answer was cut off at the limit of its length."],
  ["content_filter", "This answer was cut off by the provider's content filter."],
]);

/** Return what a person said. */
export function userMessage(message, { label = "You" } = {}) {
  const text = message.content ? el("div", { class: "plain", dir: "auto" }, message.content) : null;
  return el(
    "article",
    { class: "message user", "aria-label": label },
    text,
    attachmentList(message.attachments),
  );
}

/**
 * Return the elements of recorded messages.
 *
 * @param {Object[]} messages
 * @param {Map<string, ToolCard>} cards Gets the cards of the calls, by ID.
 */
export function history(messages, cards) {
  const elements = [];
  for (const message of messages) {
    const element = SHOWN[message.role]?.(message, cards);
    if (element) elements.push(element);
  }
  return elements;
}

const SHOWN = { user: userEntry, assistant: agentMessage, tool: toolResult, system: noteForModel };

/** Return text that is folded: a thought, or a note that states write for the model. */
export function folded(title, text) {
  const inner = el("div", { class: "plain", dir: "auto" }, text);
  return el("details", { class: "thought" }, el("summary", {}, title), inner);
}

function userEntry(message) {
  if (message.cause_by !== null) return noteForModel(message); // a state has written it
  return userMessage(message, { label: message.name ?? "You" });
}

function noteForModel(message) {
  return folded("Note for the model", message.content);
}

function agentMessage(message, cards) {
  const parts = message.content ? [spoken(message)] : [];
  for (const action of message.tool_calls) {
    const card = new ToolCard(action, { open: false });
    cards.set(action.id, card);
    parts.push(card.element);
  }
  const pictures = attachmentList(message.attachments);
  if (pictures) parts.push(pictures);
  const partial = message.metadata.partial === true;
  const cutOff = partial ? "This answer was cut off." : wayItWasCutOff(message);
  if (cutOff) parts.push(el("p", { class: "muted" }, cutOff));
  return parts.length
    ? el(
        "article",
        { class: "message agent", "aria-label": "Agent", "data-partial": partial || null },
        ...parts,
      )
    : null;
}

function wayItWasCutOff({ metadata, tool_calls: calls }) {
  return calls.length ? undefined : CUT_OFF.get(metadata.finish_reason);
}

function spoken({ content, metadata }) {
  return metadata.thought ? folded("Thinking", content) : markdown(content);
}

function toolResult(message, cards) {
  const known = cards.get(message.tool_call_id);
  const card =
    known ??
    new ToolCard(
      { name: message.name ?? "tool", args: {}, id: message.tool_call_id },
      { open: false },
    );
  card.finish(message);
  return known
    ? null
    : el("article", { class: "message agent", "aria-label": "Agent" }, card.element);
}
