// An object that the agent answers with: as it grows, then the whole of it.

import { el } from "./dom.js";
import { markdown } from "./markdown/view.js";
import { readable } from "./tool_card.js";

/** Shows an object as JSON. */
export class ObjectView {
  #code = el("code", {});

  constructor() {
    const label = { tabindex: "0", role: "group", "aria-label": "Answer" };
    const code = el("figure", { class: "code object" }, el("pre", label, this.#code));
    this.element = el("div", { class: "markdown" }, code);
    this.text = ""; // of the whole answer, once it is there
  }

  /** Show `output` as far as it has come. */
  show(output) {
    const isText = typeof output === "string";
    this.#code.textContent = isText ? output : readable(JSON.stringify(output));
  }

  /** Show the whole answer; return false if its text is not an object. */
  finish(text) {
    if (!isObject(text)) return false;
    this.text = text;
    this.#code.textContent = readable(text);
    return true;
  }

  flush() {}
}

/** Return an answer drawn once: an object as JSON, any other text as Markdown. */
export function answer(text) {
  const view = new ObjectView();
  return view.finish(text) ? view.element : markdown(text);
}

function isObject(text) {
  try {
    return /^\s*[[{]/.test(text) && JSON.parse(text) !== null;
  } catch {
    return false;
  }
}
