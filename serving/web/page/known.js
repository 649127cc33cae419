// What is known about the user: facts with their sources, to correct and to forget.

import { chatAddress } from "./address.js";
import { button, el, newId } from "./dom.js";

const DAY = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const WHO = {
  user: "You said",
  program: "This service noted",
  assistant: "The agent said",
  other: "Somebody else said",
  document: "A text that you passed on said",
  tool: "A tool or a web page said",
};
const OWN = ["user", "program"];
const LIVE = ["current", "planned", "claim"];
const GROUPS = [
  ["Known", (fact) => fact.status === "current" && OWN.includes(fact.origin)],
  ["Planned", (fact) => fact.status === "planned" && OWN.includes(fact.origin)],
  ["Said by others, not by you", (fact) => LIVE.includes(fact.status) && !isKnown(fact)],
  ["No longer true", (fact) => fact.status === "replaced" || fact.status === "ended"],
];

/** The dialog that shows what is known about the user. */
export class Known {
  #dialog;
  #api;
  #titleOf;
  #onForgotten;
  #facts = [];
  #next = null;

  /**
   * @param {HTMLDialogElement} dialog
   * @param {Api} api
   * @param {Object} actions `titleOf(session)`, and `forgotten(everything)`, called when messages went too.
   */
  constructor(dialog, api, { titleOf, forgotten }) {
    this.#dialog = dialog;
    this.#api = api;
    this.#titleOf = titleOf;
    this.#onForgotten = forgotten;
    this.#listen("close", () => dialog.close());
    this.#listen("more", () => this.#more());
    this.#listen("export", () => this.#export());
    this.#listen("everything", ({ target }) =>
      this.#ask(target.parentElement, "Forget all of this, and delete all your chats?", () =>
        this.#forget("POST", "user/forget", { everything: true }),
      ),
    );
  }

  /** Show what is known. */
  async open() {
    this.#show([], [], null);
    this.#tell("Reading…");
    this.#dialog.showModal();
    this.#part("title").focus();
    if (await this.#try(() => this.#read())) this.#tell("");
  }

  #part(name) {
    return this.#dialog.querySelector(`[data-known="${name}"]`);
  }

  #listen(name, action) {
    this.#part(name).addEventListener("click", action);
  }

  #tell(text) {
    this.#part("told").textContent = text;
  }

  /** Do something and return whether that succeeded; tell what went wrong. */
  async #try(action) {
    this.#part("problem").textContent = "";
    try {
      await action();
      return true;
    } catch (error) {
      this.#tell("");
      const gone = error.status === 404; // in another tab, or by the agent
      this.#part("problem").textContent = gone ? "This was forgotten meanwhile." : error.message;
      if (gone) await this.#readAgain();
      return false;
    }
  }

  async #read() {
    const { facts, next, blocks } = await this.#api.json("GET", "user");
    this.#show(facts, blocks, next);
  }

  async #readAgain() {
    await this.#read().catch(() => {}); // what went wrong is told already
    this.#part("title").focus();
  }

  #more() {
    return this.#try(async () => {
      const path = `user?after=${encodeURIComponent(this.#next)}`;
      const { facts, next, blocks } = await this.#api.json("GET", path);
      this.#show([...this.#facts, ...facts], blocks, next);
    });
  }

  #show(facts, blocks, next) {
    this.#facts = facts;
    this.#next = next;
    const groups = GROUPS.map(([title, fits]) =>
      group(title, facts.filter(fits).map((fact) => this.#item(fact))),
    );
    const notes = blocks.map(({ name, text }) => el("li", {}, named(text, aside(`${name}:`))));
    groups.splice(1, 0, group("Notes of the agent", notes));
    const shown = groups.filter((each) => each !== null);
    const nothing = el("p", { class: "muted" }, "Nothing is known about you yet.");
    this.#part("facts").replaceChildren(...(shown.length > 0 ? shown : [nothing]));
    this.#part("more").hidden = next === null;
    this.#part("everything").hidden = shown.length === 0;
  }

  #item(fact) {
    const slot = fact.slot ? aside(fact.slot, { class: "known-slot" }) : null;
    const about = fact.about === "user" ? null : aside(`${fact.about}:`);
    const text = named(fact.text, slot, about);
    const item = el("li", {}, text, ...this.#sources(fact), plan(fact), doubt(fact));
    const buttons = el("div", { class: "buttons" });
    if (LIVE.includes(fact.status))
      buttons.append(
        button("Correct", () => this.#edit(item, buttons, fact), {
          "aria-label": `Correct: ${fact.text}`,
        }),
      );
    buttons.append(
      button("Forget", () => this.#askToForget(buttons, fact), {
        "aria-label": `Forget: ${fact.text}`,
      }),
    );
    item.append(buttons);
    return item;
  }

  #sources(fact) {
    const who = WHO[fact.origin] ?? "From";
    if (fact.sources.length === 0)
      return [el("p", { class: "muted" }, `${who} on ${day(fact.said_at)}`)];
    return fact.sources.flatMap(({ quote, session, at }) => {
      const when = `${who} on ${day(at ?? fact.said_at)}`;
      const where = session === null ? null : this.#linkTo(session);
      const line = el("p", { class: "muted" }, where ? `${when}, in ` : when, where);
      return quote ? [line, el("blockquote", { dir: "auto" }, quote)] : [line];
    });
  }

  #linkTo(session) {
    const title = this.#titleOf(session) || "an earlier chat";
    const on = { click: () => this.#dialog.close() };
    return el("a", { href: chatAddress(session), dir: "auto", on }, title);
  }

  #edit(item, buttons, fact) {
    const id = newId("correct");
    const input = el("input", { id, type: "text", maxlength: 500, required: true, dir: "auto" });
    input.value = fact.text;
    const form = el(
      "form",
      {},
      el("label", { for: id }, "What is true"),
      input,
      el(
        "div",
        { class: "buttons" },
        el("button", { type: "submit", class: "primary" }, "Save"),
        button("Cancel", () => {
          form.replaceWith(buttons);
          buttons.querySelector("button").focus();
        }),
      ),
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (input.value.trim()) this.#correct(fact, input.value.trim());
    });
    buttons.replaceWith(form);
    input.select();
  }

  async #correct(fact, text) {
    const corrected = await this.#try(async () => {
      await this.#api.json("PATCH", factPath(fact), { text });
      await this.#read();
    });
    if (!corrected) return;
    this.#tell("Corrected.");
    this.#part("title").focus();
  }

  #askToForget(buttons, fact) {
    const question = fact.sources.some(({ session }) => session !== null)
      ? "Forget this, and the messages where it was said?"
      : "Forget this?";
    this.#ask(buttons, question, () => this.#forget("DELETE", factPath(fact)));
  }

  /** Ask in place of some buttons whether to do something. */
  #ask(buttons, question, action) {
    const back = () => asked.replaceWith(buttons);
    const keep = button("Keep", () => {
      back();
      buttons.querySelector("button:last-child").focus();
    });
    const act = button("Forget", action, { class: "danger" });
    const asked = el("div", { class: "buttons" }, el("span", { role: "alert" }, question), keep, act);
    buttons.replaceWith(asked);
    keep.focus();
    act.addEventListener("click", back);
    this.#dialog.addEventListener("close", back, { once: true });
  }

  async #forget(method, path, body) {
    this.#tell("Forgetting…");
    const forgotten = await this.#try(async () => {
      await this.#api.json(method, path, body);
      this.#onForgotten(body !== undefined);
      await this.#read();
    });
    if (forgotten) this.#tell("Forgotten.");
    this.#part("title").focus();
  }

  #export() {
    return this.#try(async () => {
      const file = new Blob([await this.#api.text("user/export")], { type: "application/json" });
      const link = el("a", { href: URL.createObjectURL(file), download: "user.json" });
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href)); // once the download has begun
    });
  }
}

function named(text, ...names) {
  const before = names.flatMap((name) => (name === null ? [] : [name, " "]));
  return el("p", { class: "known-fact", dir: "auto" }, ...before, text);
}

/** Return words beside a text, which do not tell the direction of the text. */
function aside(words, attributes) {
  return el("span", { dir: "auto", ...attributes }, words);
}

function isKnown(fact) {
  return fact.status !== "claim" && OWN.includes(fact.origin);
}

function factPath({ id }) {
  return `user/facts/${encodeURIComponent(id)}`;
}

function group(title, items) {
  if (items.length === 0) return null;
  return el("section", {}, el("h3", {}, title), el("ul", { class: "known-list" }, ...items));
}

function plan(fact) {
  if (fact.status !== "planned") return null;
  return el("p", { class: "muted" }, `From ${day(fact.valid_from)} on`);
}

function doubt(fact) {
  if (fact.disputed_by.length === 0) return null;
  return el("p", { class: "muted" }, "Something else that is known contradicts this.");
}

function day(moment) {
  return DAY.format(new Date(moment));
}
