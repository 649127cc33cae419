// One open session: its messages, then its events as they come.

import { ApiError, ConnectionLost, sessionPath } from "./api.js";
import { compareAddress, stepsAddress } from "./address.js";
import { Decisions } from "./decisions.js";
import { el } from "./dom.js";
import { follow, retry } from "./events.js";
import { MessageTools } from "./message_tools.js";
import { history, isQuestion, userMessage } from "./messages.js";
import { note } from "./notes.js";
import { ToolCard } from "./tool_card.js";
import { endNote, Turn } from "./turn.js";

const TITLE = 80; // characters

export class Conversation {
  #api;
  #view;
  #cards = new Map();
  #tools = null;
  #goal = null; // the message that is answered
  #turn = null;
  #run = null; // ID of the run that began last
  #decisions = null;
  #queued = []; // messages that the run has not read yet
  #unsure = null; // text that was sent, perhaps: the connection was lost meanwhile
  #reading = new AbortController();
  #status = "idle";
  #title = null; // of the list of chats
  #dropped = null; // a partial answer that the current run is to complete
  #partial = false; // whether the beginning of the current run is missing

  /**
   * @param {Api} api
   * @param {string} id
   * @param {Object} view log (element), net, and the functions status(text), connection(state),
   *     titleOf(session), announce(text), runUsage(usage), sessionUsage(usage), changed(session), arrived(text), gone(message),
   *     problem(message), branch(message, text).
   */
  constructor(api, id, view) {
    this.#api = api;
    this.id = id;
    this.#view = view;
  }

  /** Load the session, and follow it until `close`. */
  async open() {
    await this.#load();
  }

  close() {
    this.#reading.abort();
    this.#turn?.abandon();
  }

  /** Start a run with `message`; send it to the run that is going on, if there is one. */
  async send(message) {
    this.#unsure = message.content;
    try {
      await this.#deliver(message);
    } catch (error) {
      if (!(error instanceof ConnectionLost)) this.#unsure = null;
      else if (this.#unsure === null) return; // its events have arrived
      throw error;
    }
    this.#unsure = null;
  }

  async #deliver(message) {
    if (this.#status === "running" && (await this.#steer(message))) return;
    const { run_id: run } = await this.#post("runs", { task: message, detached: true });
    if (run !== this.#run) this.#setStatus("running"); // else its events were faster
  }

  stop() {
    return this.#post("stop");
  }

  cancel() {
    return this.#post("cancel");
  }

  get running() {
    return this.#status === "running";
  }

  #post(action, body = {}) {
    return this.#api.json("POST", sessionPath(this.id, action), body);
  }

  async #steer(message) {
    const element = userMessage(message, { label: "You, not read yet" });
    element.classList.add("queued");
    const queued = { content: message.content, element };
    this.#queued.push(queued); // before it is sent: the run may read it before the response is here
    this.#view.log.append(element);
    try {
      await this.#post("messages", message);
    } catch (error) {
      this.#queued = this.#queued.filter((other) => other !== queued);
      element.remove();
      if (error instanceof ApiError && error.status === 409) return false; // it has just ended
      throw error;
    }
    return true;
  }

  /**
   * Show the session as it is now, and follow it. A run that is going on is drawn from its events,
   * as the text of its current step is not recorded yet. If the server has not kept them all, what
   * is recorded is shown, then what comes, and everything again when the run has ended.
   */
  async #load() {
    this.#reading.abort();
    const reading = (this.#reading = new AbortController());
    const session = await this.#session(reading.signal);
    if (reading.signal.aborted) return;
    const start = session.run_started_after ?? null;
    this.#show(
      session,
      start === null ? session.messages : session.messages.slice(0, session.turn_start),
    );
    this.#partial = session.status === "running" && start === null;
    if (this.#partial) this.#beginPartialTurn();
    this.#follow(start ?? session.last_event_id, reading.signal);
  }

  /** Return the session; null once `signal` is aborted. */
  async #session(signal) {
    const options = { onState: this.#view.connection, signal };
    try {
      return await retry(() => this.#api.json("GET", sessionPath(this.id)), options);
    } catch (error) {
      if (signal.aborted) return null;
      throw error;
    }
  }

  #show(session, messages) {
    if (this.#view.log.hasChildNodes() && session.messages.length === 0)
      this.#view.problem("The server has no messages of this chat any more.");
    this.#cards.clear();
    this.#turn = null;
    this.#decisions = null;
    this.#queued = [];
    this.#tools = new MessageTools(this.#api, session, this.#view.branch);
    this.#goal = session.messages.findLast(isQuestion) ?? null;
    this.#view.log.replaceChildren(...history(messages, this.#cards, this.#tools));
    if (session.origin && !session.origin.chat) this.#view.log.prepend(this.#originNote(session));
    this.#title = session.title;
    this.#setStatus(session.status);
    this.#view.sessionUsage(session.usage);
    if (session.pending) this.#ask(session.pending, (element) => this.#view.log.append(element));
    if (session.status === "interrupted") this.#offerToContinue("The run was interrupted.");
    else if (session.status === "idle" && session.failed)
      this.#offerToContinue(`The run failed. ${session.failure}`, "failed");
    else if (session.status === "idle" && session.resumable)
      this.#offerToContinue("The run ended early.");
  }

  #offerToContinue(text, look = "ended") {
    this.#view.log.append(note(text, look, () => this.#continue()));
  }

  /** Remove a partial answer of the run that continues: it is given whole. */
  #dropPartialAnswer() {
    const last = [...this.#view.log.querySelectorAll(":scope > .message, :scope > .turn")].at(-1);
    const partial = this.#turn?.partial ?? (last?.dataset.partial === undefined ? null : last);
    partial?.remove();
    this.#dropped = partial;
  }

  /** Return a note about where the session was copied from. */
  #originNote({ origin }) {
    const title = this.#view.titleOf(origin.session) ?? origin.session;
    const from = el("a", { href: stepsAddress(origin.session, origin.step) }, title);
    const compare = el("a", { href: compareAddress(this.id, origin.session) }, "Compare");
    const text = el("span", {}, `A copy as of step ${origin.step} of `, from, ". ", compare);
    return el("div", { class: "note origin" }, text);
  }

  async #follow(after, signal) {
    const onEvent = (event, kind) => {
      if (kind === "gap") this.#reload();
      else this.#add(event);
    };
    const options = { after, onEvent, onState: this.#view.connection, signal };
    try {
      await follow(this.#api, sessionPath(this.id, "events"), options);
    } catch (error) {
      this.#view.gone(error.message);
    }
  }

  #reload() {
    this.#load().catch((error) => this.#view.gone(error.message));
  }

  #add(event) {
    const between = this.#turn === null || this.#turn.ended;
    if (between && event.kind === "run_failed") return; // it has not begun; who asked knows why
    if (event.kind === "run_started") this.#begin(event);
    else if (between) this.#beginTurn();
    if (event.kind === "message_received") this.#read(event.message);
    this.#turn.add(event);
    if (event.kind === "state_entered") this.#view.net.enter(event);
    if (event.kind === "state_exited") this.#view.net.exit(event);
    if (event.kind === "usage_reported") this.#view.runUsage(this.#turn.usage);
    if (event.kind === "run_finished" || event.kind === "run_failed") this.#end(event);
  }

  #begin({ goal, resumed, run_id: run }) {
    this.#run = run;
    for (const again of this.#view.log.querySelectorAll(".note button")) again.remove();
    if (resumed) this.#dropPartialAnswer();
    else this.#beginAnew();
    if (goal !== null) {
      this.#goal = goal;
      this.#read(goal);
      this.#title ??= titleFrom(goal.content);
    }
    this.#beginTurn();
  }

  /** Begin a run that does not continue the last one, whose calls do not run any more. */
  #beginAnew() {
    this.#view.net.clear();
    for (const card of this.#cards.values()) card.drop();
  }

  #beginTurn() {
    this.#turn?.abandon();
    this.#decisions?.close();
    this.#decisions = null;
    this.#turn = new Turn(this.#cards, () => this.#continue(), this.#tools, this.#goal);
    this.#view.log.append(this.#turn.element, ...this.#queued.map(({ element }) => element));
    this.#setStatus("running");
    this.#view.runUsage(this.#turn.usage);
    this.#view.announce("The agent works.");
    this.#changed({ status: "running", failed: false });
  }

  /** Tell what has changed in the list of chats, which the server shows in the same way. */
  #changed(changed) {
    const updated = new Date().toISOString();
    this.#view.changed({ id: this.id, title: this.#title, updated_at: updated, ...changed });
  }

  #beginPartialTurn() {
    this.#beginTurn();
    const text =
      "The server has not kept the beginning of this step. It is shown when the run has ended.";
    this.#turn.append(el("p", { class: "muted" }, text));
  }

  /** Remove the mark "not read yet" from a message: it is in the run now. */
  #read({ content }) {
    if (content === this.#unsure) {
      this.#unsure = null;
      this.#view.arrived(content);
    }
    const index = this.#queued.findIndex((queued) => queued.content === content);
    if (index < 0) return;
    this.#queued[index].element.remove();
    this.#queued.splice(index, 1);
  }

  #end(event) {
    const turn = this.#turn;
    if (this.#dropped && !turn.said) turn.element.before(this.#dropped); // nothing was added to it
    this.#dropped = null;
    const waits = event.stop_reason === "approval" || event.stop_reason === "input";
    this.#setStatus(waits ? "waiting" : "idle");
    this.#view.net.leave();
    this.#view.runUsage(turn.usage);
    if (waits) this.#ask(turn.asked, (element) => turn.append(element));
    this.#view.announce(endText(event, turn));
    this.#changed({ status: this.#status, failed: event.kind === "run_failed" });
    if (this.#partial) this.#reload();
    else this.#refresh();
  }

  /** Show the usage of the session, which the server adds up. */
  async #refresh() {
    try {
      const { usage } = await this.#api.json("GET", sessionPath(this.id));
      this.#view.sessionUsage(usage);
    } catch {
      // The stream of events shows whether the connection is lost or the session gone.
    }
  }

  #ask({ calls, questions, schemas }, append) {
    const decisions = new Decisions((body) => this.#post("resume", body));
    for (const action of calls) {
      decisions.addCall(action, this.#cards.get(action.id) ?? this.#newCard(action, append));
    }
    for (const [id, prompt] of Object.entries(questions)) {
      this.#cards.get(id)?.wait();
      append(decisions.addQuestion(id, prompt, schemas[id]));
    }
    this.#decisions = decisions;
  }

  /** Return a card for a call whose request is not among the messages. */
  #newCard(action, append) {
    const card = new ToolCard(action, { open: true });
    this.#cards.set(action.id, card);
    append(el("div", {}, card.element)); // what is asked stands beside it
    return card;
  }

  async #continue() {
    try {
      await this.#post("resume", { detached: true });
    } catch (error) {
      this.#view.problem(error.message);
    }
  }

  #setStatus(status) {
    this.#status = status;
    this.#view.status(status);
  }
}

/** Return the title that a chat gets from its first question. */
function titleFrom(question) {
  const line = question.trim().replace(/\s+/g, " ");
  return line.length <= TITLE ? line : `${line.slice(0, TITLE - 1).trimEnd()}…`;
}

function endText({ kind, stop_reason: reason, error }, turn) {
  if (kind === "run_failed") return `The run failed: ${error.message}`;
  if (reason === "approval")
    return `Waits for your approval: ${turn.asked.calls.map((call) => call.name).join(", ")}.`;
  if (reason === "input") return `The agent asks: ${Object.values(turn.asked.questions).join(" ")}`;
  return reason === "done" ? `The agent says: ${turn.said}` : endNote(reason);
}
