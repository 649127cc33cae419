// Messages as they are recorded: what a person said, what the agent said, results of tools.

import { attachmentList } from "./attachments.js";
import { el } from "./dom.js";
import { answer } from "./object_view.js";
import { sourceList } from "./sources.js";
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

/** Return whether a message is a person's. */
export function isQuestion({ role, cause_by: cause }) {
  return role === "user" && cause === null;
}

/**
 * Return the elements of recorded messages.
 *
 * @param {Object[]} messages
 * @param {Map<string, ToolCard>} cards Gets the cards of the calls, by ID.
 * @param {MessageTools|null} tools
 */
export function history(messages, cards, tools = null) {
  const elements = [];
  let question = null;
  let answer = null;
  const close = () => {
    if (tools && answer !== null) elements.push(tools.answer(question, copied(answer)));
    answer = null;
  };
  for (const message of messages) {
    const asked = isQuestion(message);
    if (asked) close();
    const element = SHOWN[message.role]?.(message, cards);
    if (asked) question = message;
    if (asked && tools) elements.push(...tools.question(message, element));
    else if (element) elements.push(element);
    if (isSpoken(message)) answer = message.content;
  }
  close();
  return elements;
}

const copied = (text) => () => text;

function isSpoken({ role, content, tool_calls: calls, metadata }) {
  const ends = role === "assistant" && content !== "" && calls.length === 0;
  return ends && !metadata.thought && !metadata.partial;
}

const SHOWN = { user: userEntry, assistant: agentMessage, tool: toolResult, system: noteForModel };

/** Return text that is folded: a thought, or a note that states write for the model. */
export function folded(title, text) {
  const inner = el("div", { class: "plain", dir: "auto" }, text);
  return el("details", { class: "thought" }, el("summary", {}, title), inner);
}

function userEntry(message) {
  if (!isQuestion(message)) return noteForModel(message); // a state has written it
  return userMessage(message, { label: message.name ?? "You" });
}

function noteForModel(message) {
  return folded("Note for the model", message.content);
}

function agentMessage(message, cards) {
  const served = message.metadata.provider_calls;
  const parts = (Array.isArray(served) ? served : []).map((call) => providerCall(call).element);
  if (message.content) parts.push(spoken(message));
  for (const action of message.tool_calls) {
    const card = new ToolCard(action, { open: false });
    cards.set(action.id, card);
    parts.push(card.element);
  }
  for (const more of [attachmentList(message.attachments), sourceList(message.metadata.sources)])
    if (more) parts.push(more);
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

/** Return the card of a call that the provider has made itself. */
export function providerCall({ id, name, args, result }, { open = false } = {}) {
  const card = new ToolCard({ id, name, args }, { open });
  card.finish({ content: result === null ? "" : JSON.stringify(result), is_error: false });
  return card;
}

function wayItWasCutOff({ metadata, tool_calls: calls }) {
  return calls.length ? undefined : CUT_OFF.get(metadata.finish_reason);
}

function spoken({ content, metadata }) {
  return metadata.thought ? folded("Thinking", content) : answer(content);
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
