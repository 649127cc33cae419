// What a run waits for: calls to approve, deny or change, and questions to answer.

import { button, el, newId, onEnter } from "./dom.js";
import { longJson, parseJson } from "./json.js";
import { answerFields } from "./question_form.js";

/**
 * The decisions of a person on one wait. They are sent together, once the last one is made.
 */
export class Decisions {
  #submit;
  #made = new Map();
  #forms = [];

  /** @param {(body: Object) => Promise<void>} submit Sends the body of POST …/resume. */
  constructor(submit) {
    this.#submit = submit;
  }

  /** Add a call; `card` shows it. */
  addCall(action, card) {
    const form = approvalForm(action, (decision) => this.#decide(form, action.id, decision));
    card.ask(form.element);
    this.#add(form, action.id, () => card.decided());
  }

  /** Return the form of a question; without the schema of its answer, that is free text. */
  addQuestion(id, prompt, schema) {
    const make = schema ? typedForm : questionForm;
    const form = make(prompt, (answer) => this.#decide(form, id, { input: answer }), schema);
    this.#add(form, id, () => form.element.remove());
    return form.element;
  }

  #add(form, id, remove) {
    this.#made.set(id, null);
    this.#forms.push({ form, remove });
  }

  /** Remove the forms: somebody has decided. */
  close() {
    for (const { remove } of this.#forms) remove();
    this.#forms = [];
  }

  async #decide(form, id, decision) {
    this.#made.set(id, decision);
    const complete = ![...this.#made.values()].includes(null);
    form.lock(
      complete ? "" : "Decided. The run continues when you have decided about the others too.",
    );
    if (!complete) return;
    try {
      await this.#submit(resumeBody(this.#made));
    } catch (error) {
      for (const each of this.#forms) each.form.unlock();
      for (const each of this.#made.keys()) this.#made.set(each, null);
      form.fail(error.message);
    }
  }
}

/** Return the body of POST …/resume for decisions by ID. */
export function resumeBody(made) {
  const body = { detached: true };
  for (const [id, { approve, deny, edit, input }] of made) {
    if (approve) (body.approve ??= []).push(id);
    if (deny !== undefined) (body.deny ??= {})[id] = deny;
    if (edit !== undefined) (body.edit ??= {})[id] = edit;
    if (input !== undefined) (body.input ??= {})[id] = input;
  }
  return body;
}

/** The parts that the forms have in common: a problem, and being locked once decided. */
class Form {
  constructor(title, ...content) {
    const label = newId("decision");
    this.problem = el("p", { class: "problem", role: "alert" });
    this.note = el("p", { class: "muted" });
    this.fields = el("fieldset", {}, ...content);
    const heading = el("p", { id: label, class: "decision-title", dir: "auto" }, title);
    this.element = el(
      "div",
      { class: "decision", role: "group", "aria-labelledby": label },
      heading,
      this.fields,
      this.note,
      this.problem,
    );
  }

  lock(note) {
    this.fields.disabled = true;
    this.problem.textContent = "";
    this.note.textContent = note;
  }

  unlock() {
    this.fields.disabled = false;
    this.note.textContent = "";
  }

  /** Show a problem, below the field that has it, or at the end. */
  fail(problem, field = this.element) {
    this.problem.textContent = problem;
    field.append(this.problem);
  }
}

function approvalForm(action, decide) {
  const more = el("div", { class: "decision-more" });
  const show = (part) => {
    more.replaceChildren(part);
    part.querySelector("input, textarea").focus();
  };
  const form = new Form(
    `May ${action.name} be called with these arguments?`,
    el(
      "div",
      { class: "buttons" },
      button("Approve", () => decide({ approve: true }), { class: "primary" }),
      button("Deny…", () => show(denial(decide))),
      button("Edit arguments…", () =>
        show(edition(action, decide, (problem) => form.fail(problem))),
      ),
    ),
    more,
  );
  return form;
}

function denial(decide) {
  const id = newId("reason");
  const input = el("input", { id, type: "text", autocomplete: "off" });
  const send = () => decide({ deny: input.value.trim() });
  input.addEventListener("keydown", (event) => onEnter(event, send));
  return el(
    "div",
    { class: "field" },
    el("label", { for: id }, "Reason, which the model reads (optional)"),
    input,
    button("Deny", send, { class: "danger" }),
  );
}

function edition(action, decide, fail) {
  const id = newId("arguments");
  const text = longJson(action.args);
  const area = el("textarea", {
    id,
    rows: Math.min(14, text.split("\n").length + 1),
    spellcheck: "false",
  });
  area.value = text;
  const send = () => {
    const args = readObject(area.value);
    if (args === null) fail("The arguments are not a JSON object.");
    else decide({ edit: args });
  };
  return el(
    "div",
    { class: "field" },
    el("label", { for: id }, "Arguments, as a JSON object"),
    area,
    button("Approve with these", send, { class: "primary" }),
  );
}

function readObject(text) {
  try {
    const value = parseJson(text);
    return value !== null && typeof value === "object" && !Array.isArray(value) ? value : null;
  } catch {
    return null;
  }
}

function typedForm(prompt, answer, schema) {
  const fail = (problem, field) => form.fail(problem, field);
  const form = new Form(prompt, answerFields(schema, answer, fail));
  return form;
}

function questionForm(prompt, answer) {
  const id = newId("answer");
  const input = el("textarea", { id, rows: 2, dir: "auto" });
  const form = new Form(
    prompt,
    el(
      "div",
      { class: "field" },
      el("label", { for: id }, "Your answer"),
      input,
      button("Answer", () => send(), { class: "primary" }),
    ),
  );
  const send = () => {
    if (input.value.trim()) answer(input.value.trim());
    else form.fail("The answer is empty.");
  };
  input.addEventListener("keydown", (event) => onEnter(event, send));
  return form;
}
