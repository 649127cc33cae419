// Where a person writes: Enter sends, Shift+Enter makes a line, pictures are pasted or chosen.

import { attachmentList, readAttachment } from "./attachments.js";
import { button, el, onEnter } from "./dom.js";

const HINTS = {
  idle: "Ask something",
  running: "Write to the agent at work",
  waiting: "Decide above, or ask something else",
  interrupted: "Ask something",
};

export class Composer {
  #parts;
  #actions;
  #files = [];
  #sending = false;

  /**
   * @param {Object<string, HTMLElement>} parts form, input, files, drop (where files are dropped),
   *     choose, picked, send, stop, cancel, problem.
   * @param {Object} actions send({content, attachments}), stop(), cancel(): all return promises.
   */
  constructor(parts, actions) {
    this.#parts = parts;
    this.#actions = actions;
    parts.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#send();
    });
    parts.input.addEventListener("keydown", (event) => onEnter(event, () => this.#send()));
    parts.input.addEventListener("input", () => this.#fit());
    parts.input.addEventListener("paste", (event) =>
      this.#attach(event.clipboardData.files, event),
    );
    parts.drop.addEventListener("dragover", (event) => {
      if (event.dataTransfer.types.includes("Files")) event.preventDefault(); // it may be dropped
    });
    parts.drop.addEventListener("drop", (event) => this.#attach(event.dataTransfer.files, event));
    parts.files.addEventListener("change", () => this.#attach(parts.files.files));
    parts.choose.addEventListener("click", () => parts.files.click());
    parts.stop.addEventListener("click", () => this.stop());
    parts.cancel.addEventListener("click", () => this.#try(actions.cancel));
    this.setStatus("idle");
  }

  /** Show what can be done while the session is idle, running or waiting. */
  setStatus(status) {
    const { input, stop, cancel } = this.#parts;
    const running = status === "running";
    const hadFocus = document.activeElement === stop || document.activeElement === cancel;
    input.placeholder = HINTS[status] ?? HINTS.idle;
    stop.textContent = "Stop";
    stop.hidden = cancel.hidden = !running;
    if (hadFocus && !running) input.focus();
  }

  /** Stop the run after the step that it is in. */
  async stop() {
    const { stop } = this.#parts;
    stop.textContent = "Stopping…";
    if (!(await this.#try(this.#actions.stop))) stop.textContent = "Stop";
  }

  /** Show a problem; an empty text removes it. */
  fail(text) {
    this.#parts.problem.textContent = text;
  }

  /** Remove `text`, which was sent though its response was lost. */
  arrived(text) {
    if (this.#sending || this.#parts.input.value.trim() !== text) return;
    this.#remove(this.#parts.input.value, this.#files);
    this.fail("");
  }

  focus() {
    this.#parts.input.focus();
  }

  async #send() {
    const { input, send } = this.#parts;
    const [text, files] = [input.value, this.#files];
    const content = text.trim();
    if (this.#sending || (!content && files.length === 0)) return;
    this.#sending = true;
    send.textContent = "Sending…";
    const sent = await this.#try(() => this.#actions.send({ content, attachments: files }));
    this.#sending = false;
    send.textContent = "Send";
    if (sent) this.#remove(text, files);
  }

  /** Remove what was sent, and keep what was written and attached since. */
  #remove(text, files) {
    const { input } = this.#parts;
    if (input.value.startsWith(text)) input.value = input.value.slice(text.length).trimStart();
    this.#files = this.#files.filter((file) => !files.includes(file));
    this.#showFiles();
    this.#fit();
  }

  async #try(action) {
    this.fail("");
    try {
      await action();
      return true;
    } catch (error) {
      this.fail(error.message);
      return false;
    }
  }

  async #attach(files, event) {
    if (files.length === 0) return;
    event?.preventDefault();
    const read = await Promise.all([...files].map(readAttachment));
    this.#parts.files.value = "";
    this.#files = [...this.#files, ...read];
    this.#showFiles();
  }

  #showFiles() {
    const items = this.#files.map((file) => {
      const remove = () => {
        this.#files = this.#files.filter((other) => other !== file);
        this.#showFiles();
        this.focus();
      };
      return el(
        "li",
        {},
        file.media_type.startsWith("image/") ? attachmentList([file]) : null,
        el("span", { title: file.name }, file.name),
        button("✕", remove, { class: "quiet", "aria-label": `Remove ${file.name}` }),
      );
    });
    this.#parts.picked.replaceChildren(...items);
  }

  #fit() {
    const { input } = this.#parts;
    input.rows = Math.min(10, Math.max(1, input.value.split("\n").length));
  }
}
