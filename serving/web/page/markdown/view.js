// An answer as it streams: blocks that are complete stay as they are, only the last one is drawn again.

import { el, patchNode } from "../dom.js";
import { parseBlocks } from "./blocks.js";

const FROM_THE_RIGHT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/; // Hebrew, Arabic and so on
const SHARE = 4; // drawing waits at least this many times as long as the last drawing took

/** Shows Markdown that arrives in pieces. */
export class MarkdownView {
  #open = ""; // the text of the blocks that may still change
  #last = null; // the last node that is complete
  #drawn = true;
  #frame = null;
  #timer = null;

  constructor() {
    this.element = el("div", { class: "markdown" });
    this.text = "";
  }

  /** Add text; it is drawn with the next frame. */
  append(text) {
    this.text += text;
    this.#open += text;
    this.#drawn = false;
    if (!this.element.dir) this.#findDirection(text);
    if (this.#timer === null) this.#frame ??= requestAnimationFrame(() => this.#drawLater());
  }

  /** The first letter tells the direction; `dir="auto"` would look for it again with each new node. */
  #findDirection(text) {
    const letter = /\p{L}/u.exec(text);
    if (letter !== null) this.element.dir = FROM_THE_RIGHT.test(letter[0]) ? "rtl" : "ltr";
  }

  /** Draw everything now. */
  flush() {
    cancelAnimationFrame(this.#frame);
    clearTimeout(this.#timer);
    this.#frame = this.#timer = null;
    if (!this.#drawn) this.#draw();
  }

  /** Draw, then wait in proportion to the time it took: a long block does not stop the page. */
  #drawLater() {
    const before = performance.now();
    this.#frame = null;
    this.#draw();
    this.#timer = setTimeout(
      () => {
        this.#timer = null;
        if (!this.#drawn) this.#frame = requestAnimationFrame(() => this.#drawLater());
      },
      (performance.now() - before) * SHARE,
    );
  }

  #draw() {
    this.#drawn = true;
    const lines = this.#open.split("\n");
    const blocks = parseBlocks(lines);
    const shown = this.#show(blocks.map((block) => block.node));
    const complete = this.#complete(blocks, lines.length);
    if (complete === 0) return;
    this.#last = shown[complete - 1];
    this.#open = lines.slice(blocks[complete].line).join("\n");
  }

  /** Show `nodes` in place of those that may change; return what is in the page. */
  #show(nodes) {
    let old = this.#last === null ? this.element.firstChild : this.#last.nextSibling;
    const shown = nodes.map((node) => {
      if (old === null) return this.element.appendChild(node);
      const following = old.nextSibling;
      const kept = patchNode(old, node);
      old = following;
      return kept;
    });
    while (old !== null) {
      const following = old.nextSibling;
      old.remove();
      old = following;
    }
    return shown;
  }

  /** Return how many blocks cannot change any more: another one follows, whose first line is complete. */
  #complete(blocks, lineCount) {
    const last = blocks.at(-1);
    if (last === undefined) return 0;
    return Math.max(0, last.line < lineCount - 1 ? blocks.length - 1 : blocks.length - 2);
  }
}

/** Return `text` as Markdown, drawn once. */
export function markdown(text) {
  const view = new MarkdownView();
  view.append(text);
  view.flush();
  return view.element;
}
