// One run, drawn from its events.

import { el } from "./dom.js";
import { MarkdownView } from "./markdown/view.js";
import { CUT_OFF, folded, userMessage } from "./messages.js";
import { note } from "./notes.js";
import { ToolCard } from "./tool_card.js";
import { counted, usageText } from "./usage.js";

const ENDS = {
  max_steps: "The run has reached its limit of steps.",
  max_tokens: "The run has reached its limit of tokens.",
  max_cost: "The run has reached its limit of cost.",
  max_tool_calls: "The run has reached its limit of tool calls.",
  timeout: "The run has reached its limit of time.",
  budget: "The budget is used up.",
  stuck: "The run repeated itself and was ended.",
  stopped: "Stopped.",
  cancelled: "Cancelled.",
};
const SILENT = ["response_started", "sleep_requested"]; // nothing is drawn for them
const WAITS = ["approval", "input"];

export class Turn {
  #cards;
  #onContinue;
  #blocks = new Map(); // by branch and response
  #branches = new Map();
  #calls = new Map(); // the cards of this run, by branch and ID
  #answer = null; // the last block in which the outermost net has said something
  #inner = null; // the last block in which any net has

  /**
   * @param {Map<string, ToolCard>} cards The calls of the session, by ID.
   * @param {() => Promise<void>} onContinue Continues a run that has ended early.
   */
  constructor(cards, onContinue) {
    this.#cards = cards;
    this.#onContinue = onContinue;
    this.asked = { calls: [], questions: {} };
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
    if (draw) draw.call(this, event);
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
    if (goal !== null) this.body.append(userMessage(goal));
  }

  on_message_received({ message }) {
    this.#blocks.clear(); // what comes next stands below the message
    this.body.append(userMessage(message));
  }

  on_state_entered({ state, path }) {
    this.activity.textContent = ["Working", ...path, state].join(" · ");
  }

  on_state_exited({ state, next, error }) {
    if (error)
      this.#note(`${state} failed: ${error.message}. The run continues with ${next}.`, "warning");
  }

  on_text_delta(event) {
    const block = this.#block(event);
    if (event.thought) {
      block.think(event);
    } else {
      block.say(event.text);
      this.#inner = block;
      if (event.path.length === 0) this.#answer = block;
    }
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

  on_approval_requested(event) {
    this.asked.calls.push(...event.actions);
  }

  on_input_requested({ id, prompt }) {
    this.asked.questions[id] = prompt;
  }

  on_stuck_detected({ reason, verdict }) {
    const next = verdict === "hint" ? "The model gets a hint." : "The run ends.";
    this.#note(`The run repeats itself: ${reason}. ${next}`, "warning");
  }

  on_recalled({ path, items, tokens }) {
    const of = (what) => items.filter((item) => item.what === what).length;
    const found = ["fact", "message"].filter(of).map((what) => counted(of(what), what));
    this.#told(path, `Recalled ${found.join(" and ")}: ${counted(tokens, "token")}.`);
  }

  on_trimmed({ path, ids }) {
    this.#told(path, `${counted(ids.length, "message")} left the window.`);
  }

  on_compacted({ path, count, tokens_before: before, tokens_after: after }) {
    const sizes = `${counted(before, "token")} became ${counted(after, "token")}`;
    this.#told(path, `Summarised ${counted(count, "message")}: ${sizes}.`);
  }

  on_escalated({ path, now, max_tokens: most }) {
    this.#told(path, `More than ${counted(most, "token")}: a ${now} is shown from now on.`);
  }

  on_learned({ path, added, replaced, read }) {
    const changed = replaced.length ? `, ${replaced.length} replaced` : "";
    const facts = counted(added.length, "fact");
    this.#told(path, `Learned ${facts}${changed} from ${counted(read, "message")}.`);
  }

  /** Say in a small line what the memory did. */
  #told(path, text) {
    this.#branch(path).append(el("p", { class: "memory-note" }, text));
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
      this.#note(ENDS[reason] ?? `The run ended: ${reason}.`, "ended", true);
    this.usage = event.usage;
    this.#end();
    if (this.usage.requests > 0 && !WAITS.includes(reason))
      this.body.append(el("p", { class: "run-usage" }, usageText(this.usage)));
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
    for (const block of this.#blocks.values()) block.flush();
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
    this.#calls.set(callKey(event), card);
    this.#cards.set(event.action.id, card);
    this.#block(event).append(card.element);
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
  #views = [];

  constructor() {
    this.element = el("article", { class: "message agent", "aria-label": "Agent" });
  }

  say(text) {
    if (this.#text === null) {
      this.#text = new MarkdownView();
      this.#views.push(this.#text);
      this.append(this.#text.element, { keep: true });
    }
    this.#thought = null;
    this.#text.append(text);
  }

  think({ text, state }) {
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

  flush() {
    for (const view of this.#views) view.flush();
  }
}
