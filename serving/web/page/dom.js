// Making elements. Text always becomes a text node, so nothing that arrives is read as HTML.

/**
 * Return a new element.
 *
 * @param {string} tag
 * @param {Object} properties "class", "on" (listeners by event), and attributes; null, undefined and
 *     false leave an attribute out, true sets it without a value.
 * @param {...(Node|string|null)} children
 */
export function el(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "on") {
      for (const [event, listener] of Object.entries(value))
        element.addEventListener(event, listener);
    } else if (value === true) {
      element.setAttribute(name, "");
    } else if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, String(value));
    }
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

/** Return a button that does not submit a form. */
export function button(label, onClick, properties = {}) {
  return el("button", { type: "button", ...properties, on: { click: onClick } }, label);
}

/** Act when Enter was pressed alone: with Shift it makes a line, in a composition it ends that. */
export function onEnter(event, act) {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  act();
}

let lastId = 0;

/** Return an ID that no other element of the page has. */
export function newId(prefix) {
  lastId += 1;
  return `${prefix}-${lastId}`;
}

/** Make the children of `target` equal to those of `source`, and keep the nodes that are equal already. */
export function patchChildren(target, source) {
  let old = target.firstChild;
  for (const next of [...source.childNodes]) {
    if (old === null) {
      target.append(next);
      continue;
    }
    const following = old.nextSibling;
    patchNode(old, next);
    old = following;
  }
  while (old !== null) {
    const following = old.nextSibling;
    old.remove();
    old = following;
  }
}

/** Make `old` equal to `next`: change it in place if it is of the same kind, else replace it. */
export function patchNode(old, next) {
  if (old.isEqualNode(next)) return old;
  if (old.nodeType === Node.TEXT_NODE && next.nodeType === Node.TEXT_NODE) {
    if (next.data.startsWith(old.data)) old.appendData(next.data.slice(old.data.length));
    else old.data = next.data;
    return old;
  }
  if (old.nodeName === next.nodeName && old.cloneNode(false).isEqualNode(next.cloneNode(false))) {
    patchChildren(old, next);
    return old;
  }
  old.replaceWith(next);
  return next;
}
