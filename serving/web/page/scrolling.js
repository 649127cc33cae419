// Keeps the end of the conversation in sight while it grows, unless a person has scrolled away from it;
// of a long form the beginning.

const NEAR = 60; // pixels

export class StickyEnd {
  #box;
  #jump;
  #stuck = true;
  #form = null; // the last one
  #top = 0; // where the box was at the last event

  /**
   * @param {HTMLElement} box What scrolls.
   * @param {HTMLElement} content What grows in it.
   * @param {HTMLElement} jump A button that returns to the end.
   */
  constructor(box, content, jump) {
    this.#box = box;
    this.#jump = jump;
    box.addEventListener("scroll", () => this.#onScroll(), { passive: true });
    jump.addEventListener("click", () => {
      this.go();
      box.focus();
    });
    const observer = new ResizeObserver(() => this.#onResize());
    observer.observe(content);
    observer.observe(box);
  }

  /** Scroll to the end and stay there. */
  go() {
    this.#stuck = true;
    this.#onResize();
  }

  /** Only a move up leaves the end: what is below may have grown since the last move down. */
  #onScroll() {
    const { scrollTop } = this.#box;
    if (scrollTop < this.#top || this.#distance < NEAR) this.#stuck = this.#distance < NEAR;
    this.#top = scrollTop;
    this.#jump.hidden = this.#stuck;
  }

  #onResize() {
    if (this.#stuck) {
      this.#box.scrollTop = this.#box.scrollHeight;
      this.#showBeginning(this.#box.querySelector(".decision"));
    }
    this.#jump.hidden = this.#stuck || this.#distance < NEAR;
  }

  /** Begin with a form that has just come and does not fit: a person fills it in from its top. */
  #showBeginning(form) {
    if (form === this.#form) return;
    this.#form = form;
    const hidden = form ? this.#box.getBoundingClientRect().top - form.getBoundingClientRect().top : 0;
    if (hidden <= 0) return;
    this.#box.scrollTop -= hidden;
    this.#stuck = false;
  }

  get #distance() {
    return this.#box.scrollHeight - this.#box.scrollTop - this.#box.clientHeight;
  }
}
