// A tool call: its arguments when it is requested, its progress, its result or error.

import { attachmentList } from "./attachments.js";
import { el } from "./dom.js";
import { longJson, parseJson, shortJson } from "./json.js";

const IN_TITLE = 80; // characters of the arguments beside the name
const ON_LINE = 60; // characters of JSON that are shown on one line

const STATES = {
  coming: "is being written",
  requested: "requested",
  waiting: "waits for you",
  running: "running",
  done: "done",
  failed: "failed",
  refused: "refused",
};

export class ToolCard {
  #coming = null; // the text of the arguments that come

  constructor(action, { open }) {
    this.action = action;
    this.status = el("span", { class: "tool-status" });
    this.bar = null;
    this.body = el(
      "div",
      { class: "tool-body" },
      section("Arguments", action.name, json(argumentsOf(action)), "None"),
    );
    this.element = el("details", { class: "tool", open }, this.#title(), this.body);
    this.#show("requested");
  }

  /** Show the next piece of the arguments of a call that is not requested yet. */
  write(text) {
    if (this.#coming === null) {
      this.#coming = document.createTextNode("");
      this.#show("coming");
      this.body.querySelector(".muted").replaceWith(block("arguments", this.action.name, this.#coming));
    }
    this.#coming.appendData(text);
  }

  #title() {
    const short = shortJson(argumentsOf(this.action));
    const shown = short.length > IN_TITLE ? `${short.slice(0, IN_TITLE)}…` : short;
    return el(
      "summary",
      {},
      el("span", { class: "tool-name" }, this.action.name),
      el("span", { class: "tool-arguments" }, shown),
      this.status,
    );
  }

  #show(state) {
    this.state = state;
    this.element.dataset.state = state;
    this.status.textContent = STATES[state];
  }

  /** Whether there is a result. */
  get over() {
    return this.result !== undefined;
  }

  /** Show that the call runs. */
  start() {
    this.#show("running");
  }

  /** Show that the call does not run, if it is not over: its run has ended. */
  drop() {
    if (!this.over) this.#show("failed");
  }

  /** Show how far the call is. */
  progress({ done, total, message }) {
    this.#show("running");
    this.bar?.remove();
    const label = message ?? (total === null ? String(done) : `${done} of ${total}`);
    const bar = el("progress", {
      value: total === null ? null : done,
      max: total,
      "aria-label": label,
    });
    this.bar = el("div", { class: "tool-progress" }, bar, el("span", {}, label));
    this.body.append(this.bar);
  }

  /** Show the result, a message of the role "tool". */
  finish(message) {
    this.bar?.remove();
    this.question?.remove();
    this.result?.remove();
    const refused = message.metadata?.decision?.approved === false;
    this.#show(refused ? "refused" : message.is_error ? "failed" : "done");
    const title = message.is_error && !refused ? "Error" : "Result";
    this.result = section(title, this.action.name, readable(message.content));
    this.result.append(attachmentList(message.attachments) ?? "");
    this.body.append(this.result);
  }

  /** Show that the call continues when a person has decided or answered. */
  wait() {
    this.#show("waiting");
  }

  /** Show a form below the arguments, such as a request for approval. */
  ask(form) {
    this.wait();
    this.question?.remove();
    this.question = form;
    this.element.open = true;
    this.element.after(form);
  }

  /** Remove the form. */
  decided() {
    this.question?.remove();
    if (this.state === "waiting") this.#show("requested");
  }
}

function argumentsOf(action) {
  return action.unparsed ?? action.args;
}

function section(title, tool, text, empty = "Empty") {
  const content = text
    ? block(title.toLowerCase(), tool, text)
    : el("p", { class: "muted" }, empty);
  return el("div", { class: "tool-section" }, el("div", { class: "tool-label" }, title), content);
}

function block(what, tool, text) {
  return el("pre", { tabindex: "0", role: "group", "aria-label": `${tool}: ${what}` }, text);
}

function json(value) {
  if (typeof value === "string") return value;
  const short = shortJson(value);
  if (short === "{}") return "";
  return short.length > ON_LINE ? longJson(value) : short;
}

/** Return JSON with line breaks, other text as it is. */
export function readable(text) {
  if (!/^\s*[[{]/.test(text)) return text;
  try {
    return json(parseJson(text)) || text;
  } catch {
    return text;
  }
}
