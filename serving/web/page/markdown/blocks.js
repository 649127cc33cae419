// The blocks of Markdown: paragraphs, headings, code, lists, quotes, tables. HTML in it is shown as text.

import { copyButton } from "../copying.js";
import { el } from "../dom.js";
import { formula } from "./formulas.js";
import { inlineNodes } from "./inline.js";

const MAX_DEPTH = 12; // lists and quotes inside each other
const FENCE = /^ {0,3}(`{3,}(?=[^`]*$)|~{3,})(.*)$/;
const HEADING = /^ {0,3}(#{1,6})(?:[ \t]+(.*))?$/;
const RULE = /^ {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( {0,3})([-*+]|(\d{1,9})[.)])( +|\t|$)/;
const FORMULA = /^ {0,3}(\$\$|\\\[)/;
const MAX_FORMULA = 50; // lines
const DIVIDER = /^ {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?$/; // without the spaces behind it

/**
 * Return the blocks of `lines` as {node, line}: the node, and the index of its first line.
 *
 * @param {string[]} lines
 * @param {number} depth How many lists and quotes are around them.
 */
export function parseBlocks(lines, depth = 0) {
  const blocks = [];
  let at = 0;
  while (at < lines.length) {
    if (!lines[at].trim()) {
      at += 1;
      continue;
    }
    const [node, end] = readBlock(lines, at, depth);
    blocks.push({ node, line: at });
    at = end;
  }
  return blocks;
}

function readBlock(lines, at, depth) {
  const line = lines[at];
  const fence = FENCE.exec(line);
  if (fence) return readFence(lines, at, fence);
  const heading = HEADING.exec(line);
  if (heading) return [readHeading(heading), at + 1];
  if (RULE.test(line)) return [el("hr"), at + 1];
  const drawn = FORMULA.test(line) && readFormula(lines, at);
  if (drawn) return drawn;
  if (depth < MAX_DEPTH) {
    if (QUOTE.test(line)) return readQuote(lines, at, depth);
    if (ITEM.test(line)) return readList(lines, at, depth);
  }
  if (startsTable(lines, at)) return readTable(lines, at);
  return readParagraph(lines, at, depth);
}

function readFence(lines, start, [, marks, info]) {
  const language = /\S+/.exec(info)?.[0];
  const closing = new RegExp(`^ {0,3}${marks[0]}{${marks.length},}[ \\t]*$`);
  let end = start + 1;
  while (end < lines.length && !closing.test(lines[end])) end += 1;
  const code = lines.slice(start + 1, end).join("\n");
  const label = language ? `Code, ${language}` : "Code";
  const pre = el(
    "pre",
    { tabindex: "0", role: "group", "aria-label": label },
    el("code", {}, code),
  );
  const title = language ? el("figcaption", {}, language) : null;
  const copy = copyButton("Copy the code", (pressed) => pressed.parentNode.querySelector("code").textContent);
  return [el("figure", { class: "code" }, title, pre, copy), Math.min(end + 1, lines.length)];
}

/** Read a formula on lines of its own; null if it does not end, or text follows it. */
function readFormula(lines, start) {
  const [, mark] = FORMULA.exec(lines[start]);
  const closing = mark === "$$" ? "$$" : "\\]";
  const inner = [lines[start].trim().slice(2)];
  for (let end = start + 1; ; end += 1) {
    if (inner.at(-1).includes(closing)) {
      const last = inner.pop().trimEnd();
      if (!last.endsWith(closing)) return null;
      inner.push(last.slice(0, -2));
      return [formula(inner.join("\n").trim(), true), end];
    }
    if (end >= lines.length || inner.length > MAX_FORMULA) return null;
    inner.push(lines[end]);
  }
}

function readHeading([, marks, text = ""]) {
  const level = Math.min(marks.length + 2, 6); // the page itself has h1 and h2
  return el(
    `h${level}`,
    { class: `level-${marks.length}` },
    ...inlineNodes(withoutMarks(text.trim())),
  );
}

/** Return a heading's text without the marks after it, as in "## Title ##". */
function withoutMarks(text) {
  let end = text.length;
  while (text[end - 1] === "#") end -= 1;
  return end === 0 || text[end - 1] === " " ? text.slice(0, end).trim() : text;
}

function readQuote(lines, start, depth) {
  let end = start;
  while (end < lines.length && QUOTE.test(lines[end])) end += 1;
  const inner = lines.slice(start, end).map((line) => line.replace(QUOTE, ""));
  return [el("blockquote", {}, ...nodesOf(inner, depth + 1)), end];
}

function readList(lines, start, depth) {
  const first = ITEM.exec(lines[start]);
  const ordered = first[3] !== undefined;
  const list = ordered ? el("ol", first[3] === "1" ? {} : { start: Number(first[3]) }) : el("ul");
  let at = start;
  while (at < lines.length) {
    const item = ITEM.exec(lines[at]);
    if (!item || (item[3] !== undefined) !== ordered || RULE.test(lines[at])) break;
    const [inner, end] = itemLines(lines, at, item);
    list.append(listItem(inner, depth));
    at = end;
  }
  return [list, at];
}

/** Return the lines of one item without their indentation, and where the next block begins. */
function itemLines(lines, start, item) {
  const space = item[4].length > 4 || item[4] === "" ? 1 : item[4].length;
  const indent = item[1].length + item[2].length + space;
  const inner = [lines[start].slice(Math.min(item[0].length, indent))];
  let end = start + 1;
  let blank = false;
  for (; end < lines.length; end += 1) {
    const line = lines[end].replace(/^\t/, "    ");
    if (!line.trim()) {
      blank = true;
    } else if (belongs(line, indent, item)) {
      if (blank) inner.push("");
      inner.push(line.slice(Math.min(indent, indentation(line))));
      blank = false;
    } else if (blank || startsBlock(line)) {
      break;
    } else {
      inner.push(line);
    }
  }
  return [inner, end];
}

/** Return whether an indented line is part of the item; models often indent by two, whatever the mark. */
function belongs(line, indent, item) {
  if (indentation(line) < Math.min(indent, 2)) return false;
  const inner = ITEM.exec(line);
  const sameKind = inner !== null && (inner[3] === undefined) === (item[3] === undefined);
  return !sameKind || indentation(line) >= indent;
}

function indentation(line) {
  return line.search(/\S/);
}

function listItem(inner, depth) {
  const nodes = nodesOf(inner, depth + 1);
  if (nodes[0]?.nodeName === "P") nodes.splice(0, 1, ...nodes[0].childNodes);
  return el("li", {}, ...nodes);
}

function startsTable(lines, at) {
  const divider = lines[at + 1];
  if (divider === undefined || !lines[at].includes("|") || !DIVIDER.test(divider.trimEnd())) return false;
  return cells(lines[at]).length === cells(divider).length;
}

function readTable(lines, start) {
  const sides = cells(lines[start + 1]).map(sideOf);
  let end = start + 2;
  while (end < lines.length && lines[end].trim() && lines[end].includes("|")) end += 1;
  const head = el("thead", {}, tableRow("th", cells(lines[start]), sides));
  const rows = lines.slice(start + 2, end).map((line) => tableRow("td", cells(line), sides));
  const table = el("table", {}, head, el("tbody", {}, ...rows));
  return [
    el("div", { class: "table", tabindex: "0", role: "group", "aria-label": "Table" }, table),
    end,
  ];
}

function tableRow(tag, texts, sides) {
  const shown = sides.map((side, index) => {
    const scope = tag === "th" ? "col" : null;
    return el(tag, { class: side, scope }, ...inlineNodes(texts[index] ?? ""));
  });
  return el("tr", {}, ...shown);
}

function cells(line) {
  const inner = line
    .trim()
    .replace(/^\|/, "")
    .replace(/(?<!\\)\|$/, "");
  return inner.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"));
}

function sideOf(divider) {
  if (divider.endsWith(":")) return divider.startsWith(":") ? "center" : "right";
  return null;
}

function readParagraph(lines, start, depth) {
  let end = start + 1;
  while (end < lines.length && lines[end].trim() && !interrupts(lines, end, depth)) end += 1;
  const text = lines
    .slice(start, end)
    .map((line) => line.trim())
    .join("\n");
  return [el("p", {}, ...inlineNodes(text)), end];
}

function startsBlock(line) {
  return (
    FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line) || ITEM.test(line)
  );
}

function interrupts(lines, at, depth) {
  const line = lines[at];
  if ([FENCE, HEADING, RULE, FORMULA].some((begin) => begin.test(line))) return true;
  if (depth < MAX_DEPTH && QUOTE.test(line)) return true;
  const item = depth < MAX_DEPTH ? ITEM.exec(line) : null;
  if (item && item[4] !== "" && (item[3] === undefined || item[3] === "1")) return true;
  return startsTable(lines, at);
}

function nodesOf(lines, depth) {
  return parseBlocks(lines, depth).map((block) => block.node);
}
