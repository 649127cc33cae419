// Notes in the conversation: how a run has ended, what went wrong.

import { button, el } from "./dom.js";

/**
 * Return a note.
 *
 * @param {string} text
 * @param {string} look "warning", "ended" or "failed".
 * @param {(() => Promise<void>)|null} onContinue Continues the run; null if it cannot be continued.
 */
export function note(text, look, onContinue = null) {
  const again = onContinue && button("Continue the run", () => once(again, onContinue));
  const role = look === "failed" ? "alert" : null;
  return el("div", { class: `note ${look}`, role }, el("span", {}, text), again);
}

/** Do what a button is for; it cannot be pressed again meanwhile. */
async function once(pressed, act) {
  pressed.disabled = true;
  await act();
  pressed.disabled = false;
}
