// The list of chats beside the conversation.

import { button, el } from "./dom.js";

const TIME = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const STATUS = { running: "running", waiting: "waits for you", interrupted: "interrupted" };

export class SessionList {
  #list;
  #empty;
  #onDelete;

  /** @param {(session: Object) => void} onDelete Called when a person wants to delete a chat. */
  constructor(list, empty, onDelete) {
    this.#list = list;
    this.#empty = empty;
    this.#onDelete = onDelete;
  }

  /** Show `sessions`; the one with the ID `current` is marked. */
  show(sessions, current) {
    const focused = document.activeElement?.closest?.("li")?.dataset.id;
    this.#list.replaceChildren(
      ...sessions.map((session) => this.#item(session, session.id === current)),
    );
    this.#empty.hidden = sessions.length > 0;
    if (focused !== undefined && document.activeElement === document.body) this.focus(focused);
  }

  /** Mark the chat with this ID. */
  mark(current) {
    for (const item of this.#list.children)
      setCurrent(item.querySelector("a"), item.dataset.id === current);
  }

  /** Return the title of a chat; undefined if it is not in the list. */
  titleOf(id) {
    const item = [...this.#list.children].find((each) => each.dataset.id === id);
    return item?.querySelector(".session-title").textContent;
  }

  /** Move the focus to a chat; to the first one if it is gone. */
  focus(id) {
    const items = [...this.#list.children];
    (items.find((item) => item.dataset.id === id) ?? items[0])?.querySelector("a").focus();
  }

  #item(session, isCurrent) {
    const title = session.title || "New chat";
    const status = STATUS[session.status];
    const link = el(
      "a",
      { href: `#/${encodeURIComponent(session.id)}` },
      el("span", { class: "session-title", dir: "auto" }, title),
      el("span", { class: "session-about" }, status ?? timeText(session.updated_at)),
    );
    setCurrent(link, isCurrent);
    const remove = button("✕", () => this.#onDelete(session), {
      class: "quiet",
      "aria-label": `Delete ${title}`,
    });
    return el("li", { "data-id": session.id, "data-status": session.status }, link, remove);
  }
}

function setCurrent(link, isCurrent) {
  if (isCurrent) link.setAttribute("aria-current", "page");
  else link.removeAttribute("aria-current");
}

function timeText(moment) {
  const date = new Date(moment ?? Number.NaN);
  return Number.isNaN(date.getTime()) ? "" : TIME.format(date);
}
