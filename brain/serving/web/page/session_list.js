// The list of chats beside the conversation.

import { chatAddress, stepsAddress } from "./address.js";
import { button, el } from "./dom.js";

const TIME = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const STATUS = { running: "running", waiting: "waits for you", interrupted: "interrupted" };

export class SessionList {
  #list;
  #empty;
  #onDelete;
  #sessions = [];
  #current = null;
  #withSteps = false;

  /** @param {(session: Object) => void} onDelete Called when a person wants to delete a chat. */
  constructor(list, empty, onDelete) {
    this.#list = list;
    this.#empty = empty;
    this.#onDelete = onDelete;
  }

  /** Show `sessions`; the one with the ID `current` is marked. */
  show(sessions, current) {
    this.#sessions = sessions;
    this.#current = current;
    const focused = document.activeElement?.closest?.("li")?.dataset.id;
    this.#list.replaceChildren(
      ...sessions.map((session) => this.#item(session, session.id === current)),
    );
    this.#empty.hidden = sessions.length > 0;
    if (focused !== undefined && document.activeElement === document.body) this.focus(focused);
  }

  /** Say whether chats keep their steps; then each has a link to them. */
  set withSteps(withSteps) {
    this.#withSteps = withSteps;
    this.show(this.#sessions, this.#current);
  }

  /** Mark the chat with this ID. */
  mark(current) {
    this.#current = current;
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
    const status = STATUS[session.status] ?? (session.failed ? "failed" : undefined);
    const about = [session.origin ? "copy" : null, status ?? timeText(session.updated_at)];
    const link = el(
      "a",
      { href: chatAddress(session.id) },
      el("span", { class: "session-title", dir: "auto" }, title),
      el("span", { class: "session-about" }, about.filter(Boolean).join(" · ")),
    );
    setCurrent(link, isCurrent);
    const remove = button("✕", () => this.#onDelete(session), {
      class: "quiet",
      "aria-label": `Delete ${title}`,
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
    return el("li", properties, link, steps, remove);
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
