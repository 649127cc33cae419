// The list of the steps of a session.

import { el, patchChildren } from "../dom.js";
import { stepsAddress } from "../address.js";
import { nextText, spentText, titleOf } from "./words.js";

const STATES = { requested: "requested", begun: "no result", done: "done", failed: "failed" };

export class Timeline {
  #list;
  #session = null;
  #parts = [];

  /** @param {HTMLOListElement} list */
  constructor(list) {
    this.#list = list;
    list.addEventListener("keydown", (event) => this.#onKey(event));
  }

  /** The parts of the session that are shown, oldest first. */
  get parts() {
    return this.#parts;
  }

  /** The number of the last step that is kept; null if there is none. */
  get last() {
    return this.#parts.findLast((part) => part.number !== null)?.number ?? null;
  }

  /** The number of the first step that is shown. */
  get first() {
    return this.#parts.find((part) => part.number !== null)?.number ?? null;
  }

  /** Show the parts of a session in place of all others. */
  show(session, parts, current) {
    this.#session = session;
    this.#parts = parts;
    this.mark(current);
  }

  /** Add parts before the first one. */
  prepend(parts, current) {
    this.#parts = [...parts, ...this.#parts];
    this.mark(current);
  }

  /** Add parts behind the last step, in place of what was under way there. */
  append(parts, current) {
    this.#parts = [...this.#parts.filter((part) => part.kind !== "open"), ...parts];
    this.mark(current);
  }

  /** Mark the step that is shown beside the list. */
  mark(current) {
    for (const link of this.#list.querySelectorAll("a")) {
      if (link.dataset.step === current) link.setAttribute("aria-current", "step"); // keeps the focus
      else link.removeAttribute("aria-current");
    }
    const items = this.#parts.map((part) => this.#item(part, current));
    patchChildren(this.#list, el("ol", {}, ...items));
  }

  /** Move the focus to the step that is marked, else to the last one. */
  focus() {
    const links = [...this.#list.querySelectorAll("a")];
    (links.find((link) => link.hasAttribute("aria-current")) ?? links.at(-1))?.focus();
  }

  /** Scroll to the step that is marked, else to the end. */
  scroll() {
    const marked = this.#list.querySelector("[aria-current]") ?? this.#list.lastElementChild;
    marked?.scrollIntoView({ block: "nearest" });
  }

  #item(part, current) {
    const name = part.number === null ? "now" : String(part.number);
    const next = nextText(part);
    const title = el(
      "span",
      { class: "step-title" },
      el("span", { class: "step-state" }, titleOf(part)),
      next ? el("span", { class: "step-next" }, ` ${next}`) : null,
    );
    const about = [part.number === null ? null : `#${part.number}`, spentText(part)];
    const content = [
      title,
      el("span", { class: "step-about" }, about.filter(Boolean).join(" · ")),
      part.summary ? el("span", { class: "step-summary", dir: "auto" }, part.summary) : null,
      ...part.calls.filter(({ state }) => state !== "requested").map(callLine),
      waitsLine(part.waits_for),
      part.branches.length
        ? el("span", { class: "step-branches" }, branchesText(part.branches))
        : null,
    ];
    const row =
      part.kind === "earlier"
        ? el("div", { class: "step-row" }, ...content)
        : el(
            "a",
            {
              class: "step-row",
              href: stepsAddress(this.#session, name),
              "data-step": name,
              "aria-current": name === current ? "step" : null,
            },
            ...content,
          );
    return el("li", { "data-kind": part.kind, "data-look": lookOf(part) }, row);
  }

  #onKey(event) {
    const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (move === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    const links = [...this.#list.querySelectorAll("a")];
    const at = links.indexOf(document.activeElement);
    const link = at < 0 ? undefined : links[at + move];
    if (link === undefined) return;
    event.preventDefault();
    link.focus();
  }
}

function lookOf(part) {
  if (part.stop_reason === "failed" && part.kind === "end") return "failed";
  if (part.error || part.calls.some(({ state }) => state === "failed")) return "trouble";
  return part.kind === "wait" ? "waiting" : null;
}

function callLine({ name, state }) {
  return el(
    "span",
    { class: "step-call", "data-state": state },
    `${name}: ${STATES[state] ?? state}`,
  );
}

function waitsLine(waits) {
  if (waits === null) return null;
  const asks = [...waits.calls.map((name) => `Approve ${name}?`), ...waits.questions];
  return el("span", { class: "step-summary" }, asks.join(" "));
}

function branchesText(branches) {
  return `Branches: ${branches.map(({ name }) => name).join(", ")}`;
}
