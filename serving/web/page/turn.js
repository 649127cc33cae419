// One run, drawn from its events.

import { attachmentList } from "./attachments.js";
import { el } from "./dom.js";
import { MarkdownView } from "./markdown/view.js";
import { memoryNote } from "./memory_notes.js";
import { CUT_OFF, folded, providerCall, userMessage } from "./messages.js";
import { note } from "./notes.js";
import { ObjectView } from "./object_view.js";
import { sourceList } from "./sources.js";
import { ToolCard } from "./tool_card.js";
import { usageText } from "./usage.js";

const ENDS = {
  max_steps: "The run has reached its limit of steps.",
  max_tokens: "The run has reached its limit of tokens.",
  max_cost: "The run has reached its limit of cost.",
  max_tool_calls: "The run has reached its limit of tool calls.",
  max_requests: "The run has reached its limit of model calls.",
  timeout: "The run has reached its limit of time.",
  budget: "The budget is used up.",
  stuck: "The run repeated itself and was ended.",
  stopped: "The run was stopped.",
  paused: "The run is paused.",
  sleeping: "The run waits until a later time.",
  cancelled: "The run was cancelled.",
};
const SILENT = ["response_started", "sleep_requested"]; // nothing is drawn for them
const WAITS = ["approval", "input"];

/** Return why a run has ended that is not done. */
export function endNote(reason) {
  return ENDS[reason] ?? `The run ended: ${reason}.`;
}

export class Turn {
  #cards;
  #onContinue;
  #tools;
  #goal;
  #blocks = new Map(); // by branch and response
  #branches = new Map();
  #calls = new Map(); // the cards of this run, by branch and ID
  #coming = new Map(); // those of calls whose arguments have not all come
  #answer = null; // the last block in which the outermost net has said something
  #inner = null; // the last block in which any net has
  #open = null; // the last block of the outermost net's step, until that ends

  /**
   * @param {Map<string, ToolCard>} cards The calls of the session, by ID.
   * @param {() => Promise<void>} onContinue Continues a run that has ended early.
   * @param {MessageTools} tools
   * @param {Object|null} goal The message that is answered; null if it is not known.
   */
  constructor(cards, onContinue, tools, goal) {
    this.#cards = cards;
    this.#onContinue = onContinue;
    this.#tools = tools;
    this.#goal = goal;
    this.asked = { calls: [], questions: {}, schemas: {} };
    this.usage = { input_tokens: 0, output_tokens: 0, cached_tokens: 0, requests: 0, cost: null };
    this.ended = false;
    this.activity = el("div", { class: "activity" }, "Working");
    this.body = el("div", { class: "turn-body" });
    this.element = el("div", { class: "turn", "data-running": true }, this.body, this.activity);
    this.#branches.set("", this.body);
  }

  /** Draw an event. */
  add(event) {
    const draw = this[`on_${event.kind}`];
    const told = draw ? null : memoryNote(event, this.#tools.textOf);
    if (draw) draw.call(this, event);
    else if (told) this.#branch(event.path).append(told);
    else if (!SILENT.includes(event.kind)) this.#other(event);
  }

  /** Draw an event of the program's own class: its kind and its fields. */
  #other({ kind, run_id, step, state, path, ...fields }) {
    const shown = ([name, value]) =>
      `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`;
    const text = Object.entries(fields).map(shown).join(", ");
    this.#branch(path).append(note(text ? `${kind}: ${text}` : kind, "event"));
  }

  on_run_started({ goal }) {
    if (goal !== null) this.body.append(...this.#tools.question(goal, userMessage(goal)));
  }

  on_message_received({ message }) {
    this.#blocks.clear(); // what comes next stands below the message
    this.body.append(...this.#tools.question(message, userMessage(message)));
  }

  on_state_entered({ state, path }) {
    this.activity.textContent = ["Working", ...path, state].join(" · ");
  }

  on_state_exited({ state, path, next, error }) {
    if (path.length === 0) this.#open = null;
    this.#leave([...path, state]);
    if (error)
      this.#note(`${state} failed: ${error.message}. The run continues with ${next}.`, "warning");
  }

  /** A net that is entered again stands below what came in between. */
  #leave(net) {
    const isInside = (path) => net.every((name, index) => path[index] === name);
    for (const key of this.#branches.keys())
      if (key && isInside(JSON.parse(key))) this.#branches.delete(key);
    for (const [key, block] of this.#blocks) {
      if (!isInside(JSON.parse(key)[0])) continue;
      block.end();
      this.#blocks.delete(key);
    }
  }

  on_text_delta(event) {
    const block = this.#block(event);
    if (event.thought) {
      block.think(event);
    } else {
      block.say(event.text);
      this.#inner = block;
      if (event.path.length === 0) this.#answer = this.#open = block;
    }
  }

  on_partial_output(event) {
    this.#block(event).grow(event.output);
  }

  on_action_delta(event) {
    const { id, name, text, path, dropped } = event;
    const action = { id, name, args: {} };
    const key = callKey({ path, action });
    if (dropped) return this.#takeBack(key);
    if (!this.#coming.has(key)) {
      const card = new ToolCard(action, { open: true });
      this.#coming.set(key, card);
      this.#block(event).append(card.element);
    }
    this.#coming.get(key).write(text);
  }

  #takeBack(key) {
    this.#coming.get(key)?.element.remove();
    this.#coming.delete(key);
  }

  on_action_requested(event) {
    const card = this.#calls.get(callKey(event));
    if (card?.over) this.#newCard(event); // the model has used the ID again
    else this.#card(event.action, event);
  }

  on_action_started(event) {
    this.#card(event.action, event).start();
  }

  on_tool_progress(event) {
    this.#card(event.action, event).progress(event);
  }

  on_action_finished(event) {
    this.#card(event.action, event).finish(event.result);
  }

  on_provider_tool_called({ call_id: id, ...event }) {
    this.#block(event).append(providerCall({ ...event, id }, { open: true }).element);
  }

  on_attachment_received({ attachment, path }) {
    this.#branch(path).append(attachmentList([attachment]));
  }

  on_sources_cited(event) {
    const sources = sourceList(event.sources);
    if (sources) this.#block(event).append(sources);
  }

  on_approval_requested(event) {
    this.asked.calls.push(...event.actions);
  }

  on_input_requested({ id, prompt, schema }) {
    this.asked.questions[id] = prompt;
    if (schema) this.asked.schemas[id] = schema;
  }

  on_stuck_detected({ reason, verdict }) {
    const next = verdict === "hint" ? "The model gets a hint." : "The run ends.";
    this.#note(`The run repeats itself: ${reason}. ${next}`, "warning");
  }

  on_usage_reported({ usage }) {
    for (const name of ["input_tokens", "output_tokens", "cached_tokens", "requests"]) {
      this.usage[name] += usage[name] ?? 0;
    }
    if (usage.cost !== null) this.usage.cost = (this.usage.cost ?? 0) + usage.cost;
  }

  on_run_finished(event) {
    const { stop_reason: reason, finish_reason: finish, answer } = event;
    if (this.#answer === null && answer && reason === "done") this.#showAnswer(event);
    if (CUT_OFF.has(finish)) this.#note(CUT_OFF.get(finish), "warning");
    if (reason !== "done" && !WAITS.includes(reason))
      this.#note(endNote(reason), "ended", true);
    this.usage = event.usage;
    this.#end();
    if (WAITS.includes(reason)) {
      this.#open = null;
      return;
    }
    if (this.usage.requests > 0)
      this.body.append(el("p", { class: "run-usage" }, usageText(this.usage)));
    this.body.append(this.#tools.answer(this.#goal, () => this.#answer?.text ?? ""));
  }

  /** Show an answer that no event of the outermost net has told; the net inside may have said it. */
  #showAnswer(event) {
    const said = this.#inner?.text.trim() === event.answer.trim();
    this.#answer = said ? this.#inner : this.#block(event);
    if (!said) this.#answer.say(event.answer);
  }

  on_run_failed({ error }) {
    this.#note(`The run failed. ${error.type}: ${error.message}`, "failed", true);
    this.#end();
  }

  /** What the agent said last, as plain text. */
  get said() {
    return this.#answer?.said ?? "";
  }

  /** What was said in a step that has not ended, which a run that continues says again. */
  get partial() {
    return this.ended ? (this.#open?.element ?? null) : null;
  }

  /** Show something that belongs to the run, such as a question. */
  append(element) {
    this.body.append(element);
  }

  /** Mark the run as over though its last event is missing. */
  abandon() {
    if (!this.ended) this.#end();
  }

  #end() {
    this.ended = true;
    for (const block of this.#blocks.values()) block.end();
    for (const key of [...this.#coming.keys()]) this.#takeBack(key);
    this.activity.remove();
    delete this.element.dataset.running;
  }

  #note(text, look, mayContinue = false) {
    this.body.append(note(text, look, mayContinue ? this.#onContinue : null));
  }

  #card(action, event) {
    const key = callKey(event);
    if (!this.#calls.has(key)) {
      const earlier = this.#cards.get(action.id); // of the run that this one continues
      const isOther = earlier?.over || [...this.#calls.values()].includes(earlier);
      if (earlier === undefined || isOther) this.#newCard(event);
      else this.#calls.set(key, earlier);
    }
    return this.#calls.get(key);
  }

  #newCard(event) {
    const card = new ToolCard(event.action, { open: true });
    const key = callKey(event);
    const coming = this.#coming.get(key);
    this.#calls.set(key, card);
    this.#cards.set(event.action.id, card);
    if (coming === undefined) this.#block(event).append(card.element);
    else coming.element.replaceWith(card.element);
    this.#coming.delete(key);
  }

  #block({ path, step, state, response_id: response }) {
    const key = JSON.stringify([path, response ?? `${step} ${state}`]);
    if (!this.#blocks.has(key)) {
      const block = new Block();
      this.#blocks.set(key, block);
      this.#branch(path).append(block.element);
    }
    return this.#blocks.get(key);
  }

  /** Return the element of a branch or an inner net; the outermost one is the body. */
  #branch(path) {
    const key = path.length ? JSON.stringify(path) : "";
    if (!this.#branches.has(key)) {
      const inner = el("div", { class: "branch-body" });
      const branch = el(
        "details",
        { class: "branch", open: true },
        el("summary", {}, path.at(-1)),
        inner,
      );
      this.#branch(path.slice(0, -1)).append(branch);
      this.#branches.set(key, inner);
    }
    return this.#branches.get(key);
  }
}

/** Return what tells a call from the others of a run: branches may use the same IDs. */
function callKey({ path, action }) {
  return JSON.stringify([path, action.id]);
}

/** What one response of the model says, thinks and calls, in this order of arrival. */
class Block {
  #text = null;
  #thought = null;
  #object = null; // the object that grows
  #views = [];

  constructor() {
    this.element = el("article", { class: "message agent", "aria-label": "Agent" });
  }

  /** Show an object as far as it has come; null takes it back. */
  grow(output) {
    if (output === null) return this.#dropObject();
    if (this.#object === null) {
      this.#object = new ObjectView();
      this.#views.push(this.#object);
      this.append(this.#object.element);
    }
    this.#object.show(output);
  }

  #dropObject() {
    this.#object?.element.remove();
    this.#views = this.#views.filter((view) => view !== this.#object);
    this.#object = null;
  }

  /** Show the text of the object that has grown; return false if it is another text. */
  #finishObject(text) {
    if (!this.#object?.finish(text)) return false;
    this.#object = null;
    return true;
  }

  say(text) {
    if (this.#finishObject(text)) return;
    this.#dropObject();
    if (this.#text === null) {
      this.#text = new MarkdownView();
      this.#views.push(this.#text);
      this.append(this.#text.element, { keep: true });
    }
    this.#thought = null;
    this.#text.append(text);
  }

  think({ text, state }) {
    if (this.#finishObject(text)) return;
    if (this.#thought === null) {
      this.#thought = document.createTextNode("");
      this.append(folded(`Thinking · ${state}`, this.#thought), { keep: true });
    }
    this.#text = null;
    this.#thought.appendData(text);
  }

  append(element, { keep = false } = {}) {
    if (!keep) this.#text = this.#thought = null;
    this.element.append(element);
  }

  /** What was said, as it was written. */
  get text() {
    return this.#views.map((view) => view.text).join("");
  }

  /** The text, without its marks, thoughts and tool calls. */
  get said() {
    return this.#views.map((view) => view.element.textContent).join(" ");
  }

  /** Nothing more comes: an object that is not whole is not kept, as in the session. */
  end() {
    this.#dropObject();
    for (const view of this.#views) view.flush();
  }
}
