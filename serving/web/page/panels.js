// The side panels: beside the conversation on a wide screen, over it on a narrow one.

/** A panel that a button opens where there is no room for it. */
export class Panel {
  #panel;
  #opener;
  #rest;
  #narrow;

  /**
   * @param {HTMLElement} panel
   * @param {HTMLElement} opener The button that opens and closes it.
   * @param {HTMLElement[]} rest What cannot be used while it is open.
   * @param {string} query A media query for screens without room.
   */
  constructor(panel, opener, rest, query) {
    this.#panel = panel;
    this.#opener = opener;
    this.#rest = rest;
    this.#narrow = matchMedia(query);
    opener.addEventListener("click", () => (this.isOpen ? this.close() : this.open()));
    document.addEventListener("pointerdown", ({ target }) => {
      const inside = panel.contains(target) || opener.contains(target) || target.closest?.("dialog");
      if (this.isOpen && !inside) this.close();
    });
    this.#narrow.addEventListener("change", () => this.close());
    this.close();
  }

  get isOpen() {
    return this.#panel.classList.contains("open");
  }

  open() {
    this.#set(true);
    this.#panel.querySelector("button, a, summary, [tabindex]")?.focus();
  }

  close() {
    const hadFocus = this.isOpen && this.#panel.contains(document.activeElement);
    this.#set(false);
    if (hadFocus && this.#narrow.matches) this.#opener.focus();
  }

  #set(open) {
    this.#panel.classList.toggle("open", open);
    this.#opener.setAttribute("aria-expanded", String(open));
    for (const element of this.#rest) element.inert = open;
  }
}
