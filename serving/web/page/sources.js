// The pages that a model cites.

import { el } from "./dom.js";
import { externalLink, safeUrl } from "./markdown/inline.js";

/** Return links to the pages that a model cites; null if there are none. */
export function sourceList(sources) {
  const given = Array.isArray(sources) ? sources : []; // a program may write other metadata
  const links = given.map(link).filter((each) => each !== null);
  if (links.length === 0) return null;
  const title = el("p", { class: "muted", "aria-hidden": "true" }, "Sources");
  const list = el("ol", { "aria-label": "Sources" }, ...links);
  return el("div", { class: "sources" }, title, list);
}

function link(source) {
  const url = safeUrl(String(source?.url));
  if (url === null) return null;
  const { title } = source;
  const site = title ? el("span", { class: "muted" }, ` ${new URL(url).host}`) : null;
  return el("li", {}, externalLink(url, el("bdi", {}, title || url)), site);
}
