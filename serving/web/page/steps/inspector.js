// The steps of a session beside the one that is looked at, in place of the conversation.

import { ConnectionLost, sessionPath } from "../api.js";
import { chatAddress, compareAddress, stepsAddress } from "../address.js";
import { el } from "../dom.js";
import { comparisonElements } from "./comparison.js";
import { forkForm } from "./fork_form.js";
import { stepElements } from "./step_view.js";
import { Timeline } from "./timeline.js";
import { placeText, titleOf } from "./words.js";

const NARROW = "(max-width: 900px)"; // the list and a step do not fit beside each other
const AGAIN = 1500; // ms between looks at a session that is running

export class Inspector {
  #api;
  #parts;
  #view;
  #timeline;
  #session = null;
  #step = null;
  #showing = 0; // counts what was asked for, so that late answers are dropped
  #timer = null;

  /**
   * @param {Api} api
   * @param {Object} parts The elements: root, title, back, all, compare, earlier, list, empty, detail.
   * @param {Object} view The functions status(text), connection(state), announce(text),
   *     opened(session, problem).
   */
  constructor(api, parts, view) {
    this.#api = api;
    this.#parts = parts;
    this.#view = view;
    this.#timeline = new Timeline(parts.list);
    parts.earlier.addEventListener("click", () => this.#guard(() => this.#loadEarlier()));
  }

  /** Show what the address names: the steps of a session, one of them, or a comparison. */
  async show({ session, view, step, other }) {
    const showing = ++this.#showing;
    const { root, back, all, detail } = this.#parts;
    root.hidden = false;
    all.href = stepsAddress(session);
    root.dataset.view = view;
    back.href = chatAddress(session);
    clearTimeout(this.#timer);
    const same = session === this.#session && view === "steps" && this.#timeline.parts.length > 0;
    if (!same) {
      this.#session = session;
      this.#clear();
    }
    this.#step = step;
    await this.#guard(async () => {
      if (view === "compare") {
        await this.#compare(session, other, showing);
      } else if (same) {
        this.#timeline.mark(step);
        await this.#showStep(step, showing);
        this.#lookAgain();
      } else {
        await this.#load(showing);
      }
    });
    if (showing === this.#showing && !same && detail.childElementCount === 0)
      this.#parts.title.focus();
  }

  /** Show nothing, and stop looking. */
  hide() {
    this.#showing += 1;
    clearTimeout(this.#timer);
    this.#session = null;
    this.#parts.root.hidden = true;
    this.#clear();
  }

  #clear() {
    const { earlier, empty, detail, compare, title } = this.#parts;
    title.textContent = "Steps";
    this.#timeline.show(this.#session, [], null);
    earlier.hidden = true;
    compare.hidden = true;
    empty.textContent = "";
    delete empty.dataset.failed;
    detail.replaceChildren();
    this.#parts.root.toggleAttribute("data-chosen", false);
  }

  #path(...rest) {
    return sessionPath(this.#session, ...rest);
  }

  /** Load the last steps, and show the one that the address names. */
  async #load(showing) {
    const found = await this.#api.json("GET", this.#path("steps"));
    if (showing !== this.#showing) return;
    this.#about(found);
    const wide = !matchMedia(NARROW).matches;
    const step = this.#step ?? (wide ? chosenIn(found.steps) : null);
    this.#step = step;
    this.#parts.earlier.hidden = !found.more;
    this.#timeline.show(this.#session, found.steps, step);
    this.#timeline.scroll();
    if (found.steps.length === 0) this.#parts.empty.textContent = "No steps are kept yet.";
    if (step !== null) await this.#showStep(step, showing);
    this.#lookAgain(found.status);
  }

  #about({ title, status, origin, id }) {
    const { compare, title: heading } = this.#parts;
    heading.textContent = title ? `Steps of ${title}` : "Steps";
    this.#view.status(status);
    compare.hidden = origin === null;
    if (origin !== null) compare.href = compareAddress(id, origin.session);
  }

  async #loadEarlier() {
    const showing = this.#showing;
    const { earlier, list } = this.#parts;
    const path = `${this.#path("steps")}?before=${this.#timeline.first}`;
    const { steps, more } = await this.#api.json("GET", path);
    if (showing !== this.#showing) return;
    const before = list.scrollHeight;
    this.#timeline.prepend(steps, this.#step);
    earlier.hidden = !more;
    list.parentElement.scrollTop += list.scrollHeight - before;
  }

  /** Look at a running session again after a while. */
  #lookAgain(status = this.#status) {
    this.#status = status;
    clearTimeout(this.#timer);
    if (status !== "running") return;
    this.#timer = setTimeout(() => this.#guard(() => this.#refresh()), AGAIN);
  }

  #status = "idle";

  async #refresh() {
    const showing = this.#showing;
    try {
      const after = this.#timeline.last ?? 0;
      const query = after ? `?after=${after}` : "";
      const found = await this.#api.json("GET", `${this.#path("steps")}${query}`);
      if (showing !== this.#showing) return;
      this.#view.connection("open");
      this.#about(found);
      this.#parts.empty.textContent = "";
      if (after) this.#timeline.append(found.steps, this.#step);
      else this.#timeline.show(this.#session, found.steps, this.#step);
      if (this.#step === "now") await this.#showUnderWay(found.steps, showing);
      this.#lookAgain(found.status);
    } catch (error) {
      if (showing !== this.#showing || !(error instanceof ConnectionLost)) throw error;
      this.#view.connection("lost");
      this.#lookAgain("running");
    }
  }

  /** Show the step under way as it is now, or the step that it has become. */
  async #showUnderWay(steps, showing) {
    const open = steps.some(({ kind }) => kind === "open");
    if (!open) this.#step = String(this.#timeline.last);
    this.#timeline.mark(this.#step);
    await this.#showStep(this.#step, showing, { quiet: true });
  }

  async #showStep(step, showing, { quiet = false } = {}) {
    const { root, detail } = this.#parts;
    root.toggleAttribute("data-chosen", step !== null);
    if (step === null) {
      detail.replaceChildren();
      this.#timeline.focus();
      return;
    }
    const [found, seen, picture] = await Promise.all([
      this.#api.json("GET", this.#path("steps", step)),
      this.#api.json("GET", this.#path("steps", step, "model-calls")),
      this.#api.text(this.#path("steps", step, "net.svg")),
    ]);
    if (showing !== this.#showing) return;
    const elements = stepElements(this.#session, found, seen, picture, () => this.#fork(found));
    detail.replaceChildren(...elements);
    if (quiet) return;
    detail.scrollTop = 0;
    detail.querySelector("h3").focus({ preventScroll: true });
    this.#view.announce(`${titleOf(found)} ${placeText(found.next)}`);
  }

  #fork(step) {
    const { detail } = this.#parts;
    detail.querySelector(".fork")?.remove();
    const form = forkForm(this.#api, this.#session, step, {
      done: (id, problem) => this.#view.opened(id, problem),
      cancel: () => {
        form.remove();
        detail.querySelector(".step-head button").focus();
      },
    });
    detail.querySelector(".step-head").after(form);
    form.querySelector("h4").focus();
  }

  async #compare(session, other, showing) {
    const path = `${sessionPath(session, "compare")}?with=${encodeURIComponent(other)}`;
    const found = await this.#api.json("GET", path);
    if (showing !== this.#showing) return;
    const { detail, root, title } = this.#parts;
    title.textContent = "Two chats";
    root.toggleAttribute("data-chosen", true);
    detail.replaceChildren(...comparisonElements(found));
    detail.querySelector("h3").focus({ preventScroll: true });
  }

  /** Do something; what goes wrong is shown in place of the steps. */
  async #guard(act) {
    const showing = this.#showing;
    try {
      await act();
    } catch (error) {
      if (showing !== this.#showing) return;
      const { empty, detail } = this.#parts;
      empty.textContent = error.message;
      empty.dataset.failed = "";
      detail.replaceChildren(el("p", { class: "problem", role: "alert" }, error.message));
    }
  }
}

/** Return the step to begin with: where the last run failed, else the last one. */
function chosenIn(steps) {
  const last = steps.findLast((part) => part.kind !== "earlier");
  if (last === undefined) return null;
  return last.number === null ? "now" : String(last.number);
}
