// Copying text to the clipboard. The buttons have no text of their own, so that what is copied has none.

import { button } from "./dom.js";

const SHOWN = 2000; // ms

/**
 * Return a button that copies what `read` returns.
 *
 * @param {string} label What it copies, for screen readers, such as "Copy the code".
 * @param {(pressed: HTMLElement) => string} read
 */
export function copyButton(label, read) {
  const onClick = async ({ currentTarget: pressed }) => {
    const done = await copy(read(pressed));
    pressed.dataset.copied = done ? "yes" : "no";
    pressed.setAttribute("aria-label", done ? "Copied" : "Could not be copied");
    setTimeout(() => {
      delete pressed.dataset.copied;
      pressed.setAttribute("aria-label", label);
    }, SHOWN);
  };
  return button("", onClick, { class: "copy quiet", "aria-label": label });
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text); // not there without https, except on this machine
    return true;
  } catch {
    return copySelection(text);
  }
}

function copySelection(text) {
  const focused = document.activeElement;
  const area = document.createElement("textarea");
  area.className = "hidden";
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  focused?.focus();
  return done;
}
