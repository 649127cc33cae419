// Formulas in TeX, drawn as MathML by Temml, which is loaded when the first one appears.

import { el } from "../dom.js";

const FOLDER = new URL("../temml/", import.meta.url);
const OPTIONS = { throwOnError: true, trust: false, maxExpand: 300, maxSize: [20, 500] };

let loading = null;

/**
 * Return the element of a formula. Until Temml is loaded, and if it cannot read the formula, it shows
 * the source.
 *
 * @param {string} tex
 * @param {boolean} display Whether it stands on lines of its own.
 */
export function formula(tex, display) {
  const element = el("span", { class: display ? "formula display" : "formula" }, tex);
  if (display) element.tabIndex = 0; // it may be wider than the page
  if (globalThis.temml) draw(element, tex, display);
  else load().then(() => draw(element, tex, display), () => {});
  return element;
}

function draw(element, tex, display) {
  const drawn = el("span");
  try {
    globalThis.temml.render(tex, drawn, { ...OPTIONS, displayMode: display });
    element.replaceChildren(...drawn.childNodes);
  } catch {
    element.classList.add("unread");
  }
}

function load() {
  loading ??= new Promise((resolve, reject) => {
    const on = { load: resolve, error: reject };
    document.head.append(
      el("link", { rel: "stylesheet", href: new URL("Temml-Local.css", FOLDER) }),
      el("script", { src: new URL("temml.min.js", FOLDER), on }),
    );
  });
  return loading;
}
