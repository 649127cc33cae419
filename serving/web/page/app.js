// The page: which session is open, and what goes where.

import { chatAddress, readAddress, stepsAddress } from "./address.js";
import { Api, ConnectionLost, sessionPath } from "./api.js";
import { Composer } from "./composer.js";
import { Conversation } from "./conversation.js";
import { deleteDialog, renameDialog, tokenDialog } from "./dialogs.js";
import { el } from "./dom.js";
import { retry } from "./events.js";
import { Known } from "./known.js";
import { NetPicture } from "./net.js";
import { Panel } from "./panels.js";
import { StickyEnd } from "./scrolling.js";
import { SessionList } from "./session_list.js";
import { resumed } from "./steps/fork_form.js";
import { Inspector } from "./steps/inspector.js";
import { showUsage } from "./usage.js";

const STATUS = {
  running: "Working",
  waiting: "Waits for you",
  interrupted: "Interrupted",
  idle: "",
};

const SEARCH_AFTER = 250; // ms

const $ = (id) => document.getElementById(id);

class App {
  #conversation = null;
  #opening = 0;
  #keepsSteps = false;
  #next = null; // where the list of chats continues
  #refreshing = 0;
  #searching;

  constructor() {
    this.api = new Api(tokenDialog($("token")));
    this.confirmDelete = deleteDialog($("delete"));
    this.net = new NetPicture($("net-picture"), $("net-state"));
    this.end = new StickyEnd($("log"), $("messages"), $("jump"));
    this.askTitle = renameDialog($("rename"));
    this.list = new SessionList(
      { list: $("sessions"), empty: $("no-sessions"), more: $("more-sessions") },
      {
        remove: (session) => this.#delete(session),
        rename: (session) => this.#rename(session),
      },
    );
    this.composer = new Composer(this.#composerParts(), {
      send: (message) => this.#send(message),
      stop: () => this.#conversation?.stop(),
      cancel: () => this.#conversation?.cancel(),
    });
    this.inspector = new Inspector(this.api, this.#inspectorParts(), {
      status: (status) => this.#showStatus(status),
      connection: (state) => this.#setConnection(state),
      announce: (text) => ($("announcer").textContent = text),
      opened: (session, problem) => this.#openCopy(session, problem),
    });
    this.known = new Known($("known"), this.api, {
      titleOf: (session) => this.list.titleOf(session),
      forgotten: (everything) => this.#forgotten(everything),
    });
    this.panels = [
      new Panel($("sidebar"), $("open-sidebar"), [$("main"), $("run-panel")], "(max-width: 760px)"),
      new Panel(
        $("run-panel"),
        $("open-run-panel"),
        [$("main"), $("sidebar")],
        "(max-width: 1100px)",
      ),
    ];
    this.#listen();
  }

  async start() {
    await Promise.all([this.#route(), this.#describe(), this.#refreshList()]);
  }

  /** Show what the agent is. */
  async #describe() {
    const options = {
      onState: (state) => this.#setConnection(state),
      signal: new AbortController().signal, // for as long as the page is open
    };
    try {
      this.#showInfo(await retry(() => this.api.json("GET", "info"), options));
      this.net.load(await retry(() => this.api.text("net.svg"), options));
      if (this.#conversation === null) this.#setConnection("open");
    } catch (error) {
      this.composer.fail(error.message);
    }
  }

  #composerParts() {
    return {
      form: $("composer"),
      input: $("message"),
      files: $("files"),
      drop: $("main"),
      choose: $("choose"),
      picked: $("picked"),
      send: $("send"),
      stop: $("stop"),
      cancel: $("cancel"),
      problem: $("problem"),
    };
  }

  #inspectorParts() {
    return {
      root: $("inspector"),
      title: $("inspector-title"),
      back: $("to-chat"),
      all: $("to-steps"),
      compare: $("compare"),
      earlier: $("earlier"),
      list: $("timeline"),
      empty: $("no-steps"),
      detail: $("step"),
    };
  }

  #listen() {
    addEventListener("hashchange", () => this.#route());
    addEventListener("keydown", (event) => this.#onKey(event));
    document.addEventListener("visibilitychange", () => document.hidden || this.#refreshList());
    $("search").addEventListener("input", () => this.#search());
    $("more-sessions").addEventListener("click", () => this.#showMore());
    $("new").addEventListener("click", () => this.#new());
    $("open-known").addEventListener("click", () => this.known.open());
    $("skip").addEventListener("click", (event) => {
      event.preventDefault(); // the address names the session
      if (inChat()) this.composer.focus();
      else $("inspector-title").focus();
    });
    for (const close of document.querySelectorAll("[data-close]")) {
      close.addEventListener("click", () => this.#closePanels());
    }
  }

  #onKey(event) {
    if (event.key !== "Escape" || event.defaultPrevented || event.isComposing) return;
    if (document.querySelector("dialog[open]")) return;
    if (this.#closePanels()) return;
    if (inChat() && this.#conversation?.running) this.composer.stop();
  }

  #closePanels() {
    const open = this.panels.filter((panel) => panel.isOpen);
    for (const panel of open) panel.close();
    return open.length > 0;
  }

  #showInfo({ net, model, tools, keeps_steps: keepsSteps, knows_users: knowsUsers }) {
    $("open-known").hidden = !knowsUsers;
    this.#keepsSteps = keepsSteps;
    this.list.withSteps = keepsSteps;
    this.#showStepsLink();
    $("about").textContent = [net, model].filter(Boolean).join(" · ");
    $("tool-list").replaceChildren(...tools.map(toolItem));
    $("tools").hidden = tools.length === 0;
  }

  /** Open what the address names: a chat, the steps of one, or a comparison. */
  async #route() {
    const address = readAddress(location.hash);
    const { session: id, view } = address;
    const isOpen = id !== null && id === this.#conversation?.id;
    document.body.dataset.view = view === "chat" ? "chat" : "steps";
    this.#showStepsLink();
    if (view === "chat") {
      this.inspector.hide();
      if (isOpen) {
        this.#setStatus(this.#status);
        return;
      }
    }
    if (!isOpen) this.#close();
    this.#closePanels();
    this.list.mark(id);
    showTitle(this.list.titleOf(id));
    if (view === "chat") await this.#openChat(id);
    else await this.inspector.show(address);
  }

  async #openChat(id) {
    this.composer.focus();
    if (id === null) return;
    try {
      await this.#open(id);
    } catch {
      // #open has told it.
    }
  }

  /** Open a session and return it. */
  async #open(id) {
    const opening = ++this.#opening;
    const conversation = new Conversation(
      this.api,
      id,
      this.#view(id, () => opening === this.#opening),
    );
    this.#conversation = conversation;
    $("welcome").hidden = true;
    try {
      await conversation.open();
    } catch (error) {
      if (opening === this.#opening) this.#gone(error.message);
      throw error;
    }
    return conversation;
  }

  #close() {
    this.#opening += 1;
    this.#conversation?.close();
    this.#conversation = null;
    $("messages").replaceChildren();
    $("welcome").hidden = false;
    $("connection").hidden = true;
    this.end.go();
    this.composer.fail("");
    this.#setStatus("idle");
    this.net.clear();
    showUsage($("usage"), "run", null);
    showUsage($("usage"), "chat", null);
  }

  /** Return what a conversation shows itself with; it does nothing once another one is open. */
  #view(id, isCurrent) {
    const whenCurrent =
      (action) =>
      (...values) =>
        isCurrent() && action(...values);
    return {
      log: $("messages"),
      net: this.net,
      titleOf: (session) => this.list.titleOf(session),
      status: whenCurrent((status) => this.#setStatus(status)),
      connection: whenCurrent((state) => this.#setConnection(state)),
      announce: whenCurrent((text) => ($("announcer").textContent = text)),
      runUsage: whenCurrent((usage) => showUsage($("usage"), "run", usage)),
      sessionUsage: whenCurrent((usage) => showUsage($("usage"), "chat", usage)),
      changed: whenCurrent((changed) => this.#changed(changed)),
      arrived: whenCurrent((text) => this.composer.arrived(text)),
      gone: whenCurrent((message) => this.#gone(message)),
      problem: whenCurrent((message) => this.composer.fail(message)),
      branch: (message, text) => this.#branch(id, message, text),
    };
  }

  /** Take the turn of a message another way, in a branch of the chat. */
  async #branch(session, message, text) {
    const branch = await this.api.json("POST", sessionPath(session, "branches"), { message, text });
    await this.#openCopy(branch.id, await resumed(this.api, branch.id));
    this.#refreshList(); // it may have ended meanwhile
  }

  /** Open a copy of a session, and tell what went wrong when its run was to be continued. */
  async #openCopy(session, problem) {
    history.pushState(null, "", chatAddress(session));
    await this.#refreshList(); // where the title of its origin is
    await this.#route();
    if (problem) this.composer.fail(problem);
  }

  #showStepsLink() {
    const { session } = readAddress(location.hash);
    $("steps-link").hidden = session === null || !this.#keepsSteps;
    if (session !== null) $("steps-link").href = stepsAddress(session);
  }

  #status = "idle";

  #setStatus(status) {
    this.#status = status;
    this.composer.setStatus(status);
    if (inChat()) this.#showStatus(status);
  }

  #showStatus(status) {
    $("status").textContent = STATUS[status] ?? "";
    $("status").dataset.status = status;
  }

  #setConnection(state) {
    const lost = state === "lost";
    if ($("connection").hidden === !lost) return;
    $("connection").hidden = !lost;
    $("announcer").textContent = lost
      ? "The connection is lost. Trying again."
      : "Connected again.";
    if (!lost) this.#refreshList();
  }

  /** Leave a session that the server refuses; what is shown stays, and the next message begins a new one. */
  #gone(message) {
    this.#opening += 1;
    this.#conversation?.close();
    this.#conversation = null;
    $("connection").hidden = true;
    $("announcer").textContent = "";
    this.#setStatus("idle");
    this.net.leave();
    this.composer.fail(message);
    this.#refreshList();
  }

  async #send(message) {
    const conversation = this.#conversation ?? (await this.#begin());
    this.end.go();
    await conversation.send(message);
  }

  /** Make a session, open it and return it. */
  async #begin() {
    const opening = this.#opening;
    const { id } = await this.api.json("POST", "sessions", {});
    if (opening !== this.#opening)
      throw new Error("The message was not sent, because you have opened another chat meanwhile.");
    history.pushState(null, "", chatAddress(id));
    this.#showStepsLink();
    return this.#open(id);
  }

  #new() {
    if (sessionInAddress() !== null) location.hash = "#/";
    this.#closePanels();
    this.composer.focus();
  }

  /** Return the IDs of all branches of a chat. */
  async #chatOf({ id }) {
    return (await this.api.json("GET", sessionPath(id))).chat.sessions;
  }

  async #delete(session) {
    if (!(await this.confirmDelete(session.title || "New chat"))) return;
    try {
      for (const id of await this.#chatOf(session)) {
        await this.api.json("DELETE", sessionPath(id));
        this.list.remove(id);
        if (id === sessionInAddress()) this.#new();
      }
      $("announcer").textContent = "The chat is deleted."; // and the connection to it not lost
    } catch (error) {
      this.composer.fail(error.message);
      await this.#refreshList();
    }
  }

  async #rename(session) {
    const title = await this.askTitle(session.title);
    if (title === null) return;
    try {
      for (const id of await this.#chatOf(session)) {
        const renamed = await this.api.json("PATCH", sessionPath(id), { title });
        this.list.change(renamed, { first: false });
        if (id === sessionInAddress()) showTitle(renamed.title);
      }
    } catch (error) {
      this.composer.fail(error.message);
    }
    this.list.focus(session.id);
  }

  /** Show the chats again, of which messages were forgotten. */
  #forgotten(everything) {
    if (everything) this.#new();
    else if (this.#conversation !== null) {
      this.#close();
      this.#route();
    }
    this.#refreshList();
  }

  /** Show in the list what events say of the open chat. */
  #changed(session) {
    const title = this.list.titleOf(session.id) ?? session.title;
    this.list.change({ ...session, title });
    this.list.mark(sessionInAddress());
    showTitle(title);
  }

  /** Look for what is written in the search field, once nothing more is written. */
  #search() {
    clearTimeout(this.#searching);
    this.#searching = setTimeout(() => this.#refreshList(), SEARCH_AFTER);
  }

  async #showMore() {
    const { sessions, next } = await this.#list(this.#next);
    this.#next = next;
    this.list.add(sessions, { more: next !== null });
  }

  #list(after = null) {
    const query = new URLSearchParams();
    if ($("search").value.trim()) query.set("search", $("search").value.trim());
    if (after !== null) query.set("after", after);
    const asked = query.toString();
    return this.api.json("GET", asked ? `sessions?${asked}` : "sessions");
  }

  async #refreshList() {
    const refresh = ++this.#refreshing;
    try {
      const { sessions, next } = await this.#list();
      if (refresh !== this.#refreshing) return; // a later one shows what it has found
      const current = sessionInAddress();
      this.#next = next;
      $("no-sessions").textContent = $("search").value.trim() ? "No chat found." : "No chats yet.";
      this.list.show(sessions, current, { more: next !== null });
      const title = this.list.titleOf(current);
      if (title !== undefined) showTitle(title);
    } catch (error) {
      if (this.#conversation === null && !(error instanceof ConnectionLost))
        this.composer.fail(error.message);
    }
  }
}

/** Name the tab, and the entry in the browser's history, after a chat. */
function showTitle(chat) {
  document.title = chat ? `${chat} – Agent Brain` : "Agent Brain";
}

function sessionInAddress() {
  return readAddress(location.hash).session;
}

function inChat() {
  return document.body.dataset.view !== "steps";
}

function toolItem({ name, description, requires_approval: asks }) {
  const about = [description?.split("\n")[0], asks ? "asks for approval" : null]
    .filter(Boolean)
    .join(" · ");
  return el("li", {}, el("strong", {}, name), el("span", {}, about));
}

new App().start();
