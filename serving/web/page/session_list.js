// The list of chats beside the conversation.

import { chatAddress, stepsAddress } from "./address.js";
import { button, el } from "./dom.js";

const TODAY = new Intl.DateTimeFormat(undefined, { timeStyle: "short" });
const DAY = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const STATUS = { running: "running", waiting: "waits for you", interrupted: "interrupted" };

export class SessionList {
  #list;
  #empty;
  #more;
  #onDelete;
  #onRename;
  #sessions = [];
  #current = null;
  #withSteps = false;

  /**
   * @param {Object} parts `list`, `empty` and `more`, a button that is shown if there are more chats.
   * @param {Object} actions `remove(session)` and `rename(session)`, when a person wants it.
   */
  constructor({ list, empty, more }, { remove, rename }) {
    this.#list = list;
    this.#empty = empty;
    this.#more = more;
    this.#onDelete = remove;
    this.#onRename = rename;
  }

  /** Show `sessions`; the one with the ID `current` is marked. */
  show(sessions, current, { more = false } = {}) {
    this.#more.hidden = !more;
    this.#show(sessions, current);
  }

  /** Show `sessions` below the others. */
  add(sessions, { more }) {
    const known = new Set(sessions.map(({ id }) => id)); // changed while the others were read
    this.#more.hidden = !more;
    this.#show([...this.#sessions.filter(({ id }) => !known.has(id)), ...sessions], this.#current);
  }

  /** Show what has changed of a chat, which is then the first; add it if it is not there. */
  change(changed, { first = true } = {}) {
    const at = this.#sessions.findIndex(({ id }) => id === changed.id);
    const session = { ...this.#sessions[at], ...changed };
    const others = this.#sessions.filter(({ id }) => id !== changed.id);
    others.splice(first || at < 0 ? 0 : at, 0, session);
    this.#show(others, this.#current);
  }

  /** Leave out a chat. */
  remove(gone) {
    this.#show(
      this.#sessions.filter(({ id }) => id !== gone),
      this.#current,
    );
  }

  #show(sessions, current) {
    this.#sessions = sessions;
    this.#current = current;
    const focused = document.activeElement?.closest?.("li")?.dataset.id;
    const chats = chatsOf(sessions, current);
    this.#list.replaceChildren(
      ...chats.map((branches) => this.#item(branches[0], branches[0].id === current, branches)),
    );
    this.#empty.hidden = sessions.length > 0;
    if (focused !== undefined && document.activeElement === document.body) this.focus(focused);
  }

  /** Say whether chats keep their steps; then each has a link to them. */
  set withSteps(withSteps) {
    this.#withSteps = withSteps;
    this.#show(this.#sessions, this.#current);
  }

  /** Mark the chat with this ID. */
  mark(current) {
    this.#show(this.#sessions, current);
  }

  /** Return the title of a chat; undefined if it is not in the list. */
  titleOf(id) {
    return this.#sessions.find((session) => session.id === id)?.title;
  }

  /** Move the focus to a chat; to the first one if it is gone. */
  focus(id) {
    const items = [...this.#list.children];
    (items.find((item) => item.dataset.id === id) ?? items[0])?.querySelector("a").focus();
  }

  #item(session, isCurrent, branches) {
    const title = session.title || "New chat";
    const status = STATUS[session.status] ?? (session.failed ? "failed" : undefined);
    const about = [
      session.origin && !session.origin.chat ? "copy" : null,
      branches.length > 1 ? `${branches.length} branches` : null,
      status ?? timeText(session.updated_at),
    ];
    const link = el(
      "a",
      { href: chatAddress(session.id), "aria-current": isCurrent ? "page" : null },
      el("span", { class: "session-title", dir: "auto" }, title),
      el("span", { class: "session-about" }, about.filter(Boolean).join(" · ")),
    );
    const remove = button("✕", () => this.#onDelete(session), {
      class: "quiet",
      "aria-label": `Delete ${title}`,
    });
    const rename = button("✎", () => this.#onRename(session), {
      class: "quiet",
      "aria-label": `Rename ${title}`,
    });
    const steps = this.#withSteps
      ? el(
          "a",
          { class: "session-steps", href: stepsAddress(session.id), "aria-label": `Steps of ${title}` },
          "Steps",
        )
      : null;
    const properties = {
      "data-id": session.id,
      "data-status": session.failed && !STATUS[session.status] ? "failed" : session.status,
    };
    return el("li", properties, link, steps, rename, remove);
  }
}

/** Return the branches of each chat; first the one that is shown: the current one, or the last changed. */
function chatsOf(sessions, current) {
  const chats = new Map();
  for (const session of sessions) {
    const chat = session.origin?.chat ?? session.id;
    const branches = chats.get(chat) ?? [];
    if (session.id === current) branches.unshift(session);
    else branches.push(session);
    chats.set(chat, branches);
  }
  return [...chats.values()];
}

function timeText(moment) {
  const date = new Date(moment ?? Number.NaN);
  if (Number.isNaN(date.getTime())) return "";
  return (date.toDateString() === new Date().toDateString() ? TODAY : DAY).format(date);
}
