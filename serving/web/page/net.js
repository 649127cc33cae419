// The picture of the net, with the current state lit.

// What the picture may have; anything else, such as a script or a style, is left out.
const ELEMENTS = new Set(
  "svg g path rect circle ellipse line polyline polygon text tspan title desc defs marker".split(
    " ",
  ),
);
const ATTRIBUTES = new Set(
  (
    "id class d x y x1 y1 x2 y2 cx cy r rx ry points width height viewBox transform fill stroke stroke-width text-anchor " +
    "marker-end marker-start markerWidth markerHeight markerUnits orient refX refY role aria-label"
  ).split(" "),
);
const SVG = "http://www.w3.org/2000/svg";

export class NetPicture {
  #place;
  #current;
  #lit = new Map(); // the current state of each net, by its path

  /**
   * @param {Element} place Gets the picture.
   * @param {Element} current Gets the name of the current state.
   */
  constructor(place, current) {
    this.#place = place;
    this.#current = current;
  }

  /** Show the picture in `text`, an SVG document. */
  load(text) {
    const plain = text.replace(/<style\b[\s\S]*?<\/style>/gi, ""); // the page's policy forbids it
    const parsed = new DOMParser().parseFromString(plain, "image/svg+xml").documentElement;
    if (parsed.namespaceURI !== SVG || parsed.localName !== "svg") return;
    this.#place.replaceChildren(clean(parsed));
  }

  /** Light the state that is entered, in the net or in a net inside, in place of the one before. */
  enter({ path, state }) {
    this.exit({ path });
    const element = this.#place.querySelector(
      `#${CSS.escape(["state", ...path, state].join("-"))}`,
    );
    element?.classList.add("now", "visited");
    this.#lit.set(JSON.stringify(path), element);
    this.#current.textContent = `In ${[...path, state].join(" › ")}`;
  }

  /** Put out the current state of the net at `path`. */
  exit({ path }) {
    this.#lit.get(JSON.stringify(path))?.classList.remove("now");
  }

  /** Put everything out. */
  leave() {
    for (const element of this.#lit.values()) element?.classList.remove("now");
    this.#lit.clear();
    this.#current.textContent = "Not running";
  }

  /** Forget which states were visited. */
  clear() {
    this.leave();
    for (const element of this.#place.querySelectorAll(".visited")) {
      element.classList.remove("visited");
    }
  }
}

/** Return a copy of an element without anything that is not known to be harmless. */
function clean(source) {
  const copy = document.createElementNS(SVG, source.localName);
  for (const { name, value } of source.attributes) {
    if (ATTRIBUTES.has(name) && !/url\((?!#)/i.test(value)) copy.setAttribute(name, value);
  }
  for (const child of source.childNodes) {
    if (child.nodeType === Node.TEXT_NODE) copy.append(child.data);
    else if (child.namespaceURI === SVG && ELEMENTS.has(child.localName)) copy.append(clean(child));
  }
  return copy;
}
