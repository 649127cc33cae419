// What can be done with a message: copy it, change it, answer it again, choose another branch.

import { chatAddress } from "./address.js";
import { sessionPath } from "./api.js";
import { copyButton } from "./copying.js";
import { button, el, newId, onEnter } from "./dom.js";

let chosen = null; // the branches that a person is going through: a message has other IDs in them

/** Makes the tools of the messages of a session. */
export class MessageTools {
  #api;
  #session;
  #branch;

  /**
   * @param {Api} api
   * @param {Object} session As the server describes it.
   * @param {(message: string, text?: string) => Promise<void>} branch Takes the turn of a message
   *     another way, in a branch of the chat.
   */
  constructor(api, session, branch) {
    this.#api = api;
    this.#session = session;
    this.#branch = branch;
  }

  /** Find the text of a message or a fact. */
  textOf = async ({ id, what, session }) => {
    const isFact = what === "fact";
    const path = isFact ? `user/facts/${id}` : sessionPath(session ?? this.#session.id);
    const found = await this.#api.json("GET", path);
    const text = isFact ? "text" : "content";
    return found[isFact ? "facts" : "messages"].find((each) => each.id === id)[text];
  };

  /** Return a message of the user and its tools; `element` shows it. */
  question(message, element) {
    const tools = el(
      "div",
      { class: "tools of-user", role: "group", "aria-label": "About the message" },
      message.content ? copyButton("Copy the message", () => message.content) : null,
    );
    if (this.#session.keeps_steps && message.content)
      tools.append(button("Edit", () => this.#edit(message, element, tools), { class: "quiet" }));
    const choice = this.#session.chat.choices[message.id];
    if (choice) tools.append(picker(choice));
    return [element, tools];
  }

  /** Return the tools of an answer to `question`, a message; `read` returns its text. */
  answer(question, read) {
    const again = () => this.#try(tools, () => this.#branch(question.id));
    const tools = el(
      "div",
      { class: "tools of-agent", role: "group", "aria-label": "About the answer" },
      copyButton("Copy the answer", read),
      question && this.#session.keeps_steps
        ? button("Answer again", again, { class: "quiet" })
        : null,
    );
    return tools;
  }

  #edit(message, element, tools) {
    const id = newId("edit");
    const input = el("textarea", { id, rows: "3", dir: "auto" });
    input.value = message.content;
    const close = () => {
      form.replaceWith(element, tools);
      tools.querySelector("button:not(.copy)").focus();
    };
    const submit = el("button", { type: "submit", class: "primary" }, "Send in a branch");
    const buttons = el(
      "div",
      { class: "buttons" },
      button("Cancel", close, { class: "quiet" }),
      submit,
    );
    const form = el(
      "form",
      { class: "edit" },
      el("label", { for: id, class: "hidden" }, "Edit your message"),
      input,
      buttons,
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#try(form, () => this.#branch(message.id, input.value));
    });
    input.addEventListener("keydown", (event) => onEnter(event, () => submit.click()));
    form.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || event.isComposing) return;
      event.preventDefault(); // it does not stop the run too
      close();
    });
    tools.remove();
    element.replaceWith(form);
    input.focus();
  }

  /** Do something once; what goes wrong is shown in `place`. */
  async #try(place, act) {
    const buttons = place.querySelectorAll("button");
    for (const each of buttons) each.disabled = true;
    place.querySelector(".problem")?.remove();
    try {
      await act();
    } catch (error) {
      place.append(el("p", { class: "problem", role: "alert" }, error.message));
    }
    for (const each of buttons) each.disabled = false;
  }
}

function picker({ sessions, at }) {
  const ways = sessions.join();
  const link = (sign, name, index) => {
    if (sessions[index] === undefined) return el("span", { "aria-hidden": "true" }, sign);
    const to = el("a", { href: chatAddress(sessions[index]), "aria-label": name }, sign);
    to.addEventListener("click", () => (chosen = ways));
    return to;
  };
  const place = el(
    "span",
    { class: "branch-picker", role: "group", "aria-label": "Branches", tabindex: "-1" },
    link("‹", "Previous branch", at - 1),
    el("span", {}, `${at + 1} of ${sessions.length}`),
    link("›", "Next branch", at + 1),
  );
  if (chosen === ways) {
    chosen = null;
    requestAnimationFrame(() => place.focus());
  }
  return place;
}
