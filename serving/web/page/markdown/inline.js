// The inline part of Markdown: code, emphasis, links. Reads text in one pass, builds nodes in another.

import { el } from "../dom.js";
import { formula } from "./formulas.js";

const MAX_LABEL = 2000; // characters of a link's text; bounds the search for its end
const MAX_URL = 4000;
const MAX_FORMULA = 4000;
const MAX_OPEN = 32; // emphasis that may be open at once; bounds the depth of the nodes
const PUNCTUATION = /[!-/:-@[-`{-~]/;
const SPACE = /\s/;
const WORD = /[\p{L}\p{N}]/u;
const IN_DOLLARS = /^\$(?!\s)((?:\\.|[^$\\])+)(?<!\s)\$(?![\p{L}\p{N}])/u;
const BARE_URL = /https?:\/\/[^\s<>"'`*]+/iy;
const IN_ANGLES = /<((?:https?:\/\/|mailto:)[^\s<>]+)>/iy;
const TAGS = { "*": "em", _: "em", "**": "strong", __: "strong", "~~": "del" };

/** Return `url` if a link may lead there: http, https and mailto; null for any other. */
export function safeUrl(url) {
  const match = /^(https?|mailto):/i.exec(url.trim());
  if (match === null) return null;
  try {
    return new URL(url.trim()).href;
  } catch {
    return null;
  }
}

/** Return a link that opens beside the page and tells the other site nothing about it. */
export function externalLink(url, ...children) {
  return el("a", { href: url, target: "_blank", rel: "noopener noreferrer" }, ...children);
}

/** Return the nodes of one paragraph's text. */
export function inlineNodes(text, { links = true } = {}) {
  return build(pairs(new Scanner(text, links).tokens()));
}

/** Cuts text into tokens: {text}, {node} and emphasis marks {mark, opens, closes}. */
class Scanner {
  constructor(text, links) {
    this.text = text;
    this.links = links;
    this.at = 0;
    this.found = [];
    this.plain = "";
    this.unclosed = new Set(); // lengths of runs of backticks that nothing closes
    this.ends = {}; // where the next mark is that closes a formula
  }

  tokens() {
    while (this.at < this.text.length) {
      const read = this.special(this.text[this.at]);
      if (!read) this.plain += this.text[this.at++];
    }
    this.flush();
    return this.found;
  }

  flush() {
    if (this.plain) this.found.push({ text: this.plain });
    this.plain = "";
  }

  push(token, end) {
    this.flush();
    this.found.push(token);
    this.at = end;
    return true;
  }

  special(char) {
    switch (char) {
      case "\\":
        return this.escape();
      case "\n":
        return this.push({ node: el("br") }, this.at + 1);
      case "`":
        return this.code();
      case "$":
        return this.dollars();
      case "*":
      case "_":
      case "~":
        return this.mark(char);
      case "!":
        return this.text[this.at + 1] === "[" && this.link(this.at + 1);
      case "[":
        return this.link(this.at);
      case "<":
        return this.matched(IN_ANGLES);
      case "h":
      case "H":
        return !WORD.test(this.text[this.at - 1] ?? " ") && this.matched(BARE_URL);
      default:
        return false;
    }
  }

  escape() {
    const next = this.text[this.at + 1];
    if (next === "(" && this.formula("\\)", false)) return true;
    if (next === "[" && this.formula("\\]", true)) return true;
    if (next === "\n") return this.push({ node: el("br") }, this.at + 2);
    if (next === undefined || !PUNCTUATION.test(next)) return false;
    this.plain += next;
    this.at += 2;
    return true;
  }

  /** A formula between dollars; "from $5 to $6" and "$HOME:$PATH" are none. */
  dollars() {
    if (this.text[this.at + 1] === "$") return this.formula("$$", true);
    const inner = IN_DOLLARS.exec(this.text.slice(this.at, this.at + MAX_FORMULA))?.[1];
    if (inner === undefined || WORD.test(this.text[this.at - 1] ?? " ")) return false;
    return this.push({ node: formula(inner, false) }, this.at + inner.length + 2);
  }

  formula(closing, display) {
    const start = this.at + 2;
    if (!(this.ends[closing] >= start)) {
      const found = this.text.indexOf(closing, start);
      this.ends[closing] = found < 0 ? Infinity : found;
    }
    const end = this.ends[closing];
    if (end === start || end - start > MAX_FORMULA) return false;
    return this.push({ node: formula(this.text.slice(start, end).trim(), display) }, end + 2);
  }

  code() {
    const run = runLength(this.text, this.at);
    const start = this.at + run;
    const end = this.unclosed.has(run) ? -1 : closingRun(this.text, start, run);
    if (end < 0) {
      this.unclosed.add(run);
      this.plain += this.text.slice(this.at, start);
      this.at = start;
      return true;
    }
    let code = this.text.slice(start, end).replaceAll("\n", " ");
    if (code.startsWith(" ") && code.endsWith(" ") && code.trim()) code = code.slice(1, -1);
    return this.push({ node: el("code", {}, code) }, end + run);
  }

  mark(char) {
    const run = runLength(this.text, this.at);
    const before = this.text[this.at - 1] ?? " ";
    const after = this.text[this.at + run] ?? " ";
    const inWord = char === "_" && WORD.test(before) && WORD.test(after);
    if (run > 3 || inWord || (char === "~" && run !== 2)) {
      this.plain += this.text.slice(this.at, this.at + run);
      this.at += run;
      return true;
    }
    const opens = !SPACE.test(after) && (WORD.test(after) || !WORD.test(before));
    const closes = !SPACE.test(before) && (WORD.test(before) || !WORD.test(after));
    const marks = run === 3 ? [char + char, char] : [char.repeat(run)];
    if (closes && !opens) marks.reverse();
    const end = this.at + run;
    for (const mark of marks) this.push({ mark, opens, closes }, end);
    return true;
  }

  link(open) {
    if (!this.links) return false;
    const close = labelEnd(this.text, open);
    if (close < 0 || this.text[close + 1] !== "(") return false;
    const target =
      /\(\s{0,9}(?:<([^<>\n]*)>|([^\s()]*(?:\([^\s()]*\)[^\s()]*)*))(?:\s{1,9}(?:"[^"]*"|'[^']*'))?\s{0,9}\)/y;
    const head = this.text.slice(close + 1, close + 1 + MAX_URL);
    const match = target.exec(head);
    if (match === null) return false;
    const url = safeUrl(match[1] ?? match[2]);
    const label = this.text.slice(open + 1, close);
    const end = close + 1 + match[0].length;
    if (url === null) return this.push({ text: this.text.slice(this.at, end) }, end);
    return this.push(
      { node: externalLink(url, ...inlineNodes(label || url, { links: false })) },
      end,
    );
  }

  matched(pattern) {
    if (!this.links) return false;
    pattern.lastIndex = this.at;
    const match = pattern.exec(this.text);
    if (match === null) return false;
    const written = match[1] ?? trimmedUrl(match[0]);
    const url = safeUrl(written);
    if (url === null) return false;
    const length = match[1] === undefined ? written.length : match[0].length;
    return this.push({ node: externalLink(url, written) }, this.at + length);
  }
}

/** Return a bare URL without the punctuation that belongs to the sentence. */
function trimmedUrl(url) {
  let end = url.length;
  while (end > 0 && /[.,:;!?\]}]/.test(url[end - 1])) end -= 1;
  if (url[end - 1] === ")" && !url.includes("(")) end -= 1;
  return url.slice(0, end);
}

function runLength(text, start) {
  let end = start;
  while (text[end] === text[start]) end += 1;
  return end - start;
}

function closingRun(text, from, length) {
  let at = text.indexOf("`", from);
  while (at >= 0) {
    const run = runLength(text, at);
    if (run === length) return at;
    at = text.indexOf("`", at + run);
  }
  return -1;
}

function labelEnd(text, open) {
  let depth = 0;
  const limit = Math.min(text.length, open + MAX_LABEL);
  for (let at = open; at < limit; at += 1) {
    if (text[at] === "\\") at += 1;
    else if (text[at] === "[") depth += 1;
    else if (text[at] === "]" && --depth === 0) return at;
  }
  return -1;
}

/** Pair the marks that open with those that close; a mark without a partner stays text. */
function pairs(tokens) {
  const open = [];
  for (const token of tokens) {
    if (token.mark === undefined) continue;
    const partner = token.closes ? open.findLastIndex((other) => other.mark === token.mark) : -1;
    if (partner >= 0) {
      open[partner].pair = "start";
      token.pair = "end";
      open.length = partner;
    } else if (token.opens && open.length < MAX_OPEN) {
      open.push(token);
    }
  }
  return tokens;
}

function build(tokens) {
  const root = el("span");
  let parent = root;
  for (const token of tokens) {
    if (token.pair === "start") {
      const child = el(TAGS[token.mark]);
      parent.append(child);
      parent = child;
    } else if (token.pair === "end") {
      parent = parent.parentNode;
    } else {
      parent.append(token.node ?? token.text ?? token.mark);
    }
  }
  root.normalize();
  return [...root.childNodes];
}
