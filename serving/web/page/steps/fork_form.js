// Going on from a step in a copy of the session, with changes.

import { ApiError, sessionPath } from "../api.js";
import { button, el, newId } from "../dom.js";
import { longJson, parseJson } from "../json.js";
import { authorOf } from "./seen.js";

/**
 * Return a form that copies a session as of a step.
 *
 * @param {Api} api
 * @param {string} session
 * @param {Object} step The details of the step.
 * @param {{done: (id: string, problem: string) => void, cancel: () => void}} actions What to do with
 *     the new session, and when the person thinks again.
 */
export function forkForm(api, session, step, { done, cancel }) {
  const texts = step.latest.filter(isEditable).map((message) => messageField(message, step));
  const args = step.next_calls.map(callField);
  const problem = el("p", { class: "problem", role: "alert" });
  const goesOn = step.status === "running" || (step.kind === "end" && step.stop_reason !== "done");
  const title = el("h4", { id: newId("fork"), tabindex: "-1" }, `Fork from step ${step.number}`);
  const submit = goesOn ? "Fork and continue" : "Fork";
  const buttons = el(
    "div",
    { class: "buttons" },
    el("button", { type: "submit", class: "primary" }, submit),
    goesOn ? button("Fork only", () => send(false)) : null,
    button("Cancel", cancel, { class: "quiet" }),
  );
  const form = el(
    "form",
    { class: "fork", "aria-labelledby": title.id },
    title,
    el("p", { class: "muted" }, aboutText(step, goesOn)),
    ...texts.map(({ element }) => element),
    ...args.map(({ element }) => element),
    problem,
    buttons,
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send(goesOn);
  });
  let sending = false;

  async function send(resume) {
    if (sending) return;
    sending = true;
    problem.textContent = "";
    try {
      const body = { step: step.number, messages: changed(texts), calls: changed(args) };
      const { id } = await api.json("POST", sessionPath(session, "fork"), body);
      done(id, resume ? await resumed(api, id) : "");
    } catch (error) {
      problem.textContent = error.message;
    }
    sending = false;
  }

  return form;
}

/** Continue the run of the new session; return what went wrong, or nothing. */
export async function resumed(api, id) {
  try {
    await api.json("POST", sessionPath(id, "resume"), { detached: true });
    return "";
  } catch (error) {
    if (error instanceof ApiError) return error.message;
    throw error;
  }
}

function aboutText(step, goesOn) {
  const first = "Makes a new chat with everything up to this step. This chat stays as it is.";
  if (goesOn) return `${first} What you change here is changed in the copy only.`;
  if (step.kind === "wait") return `${first} You decide there.`;
  return `${first} Send it another message there.`;
}

function isEditable({ role, content, metadata }) {
  return content !== "" && role !== "system" && !metadata?.thought;
}

function messageField(message, { latest }) {
  const isGoal = message.id === latest[0]?.id && message.role === "user";
  const isNote = message.role === "user" && message.cause_by !== null;
  const label = isGoal ? "Goal" : isNote ? "Note for the model" : authorOf(message);
  return field(message.id, label, message.content, (text) => text);
}

function callField({ id, name, args, unparsed }) {
  return field(id, `Arguments of ${name}`, unparsed ?? longJson(args), (text) => {
    try {
      return parseJson(text);
    } catch (error) {
      throw new Error(`The arguments of ${name} are not JSON: ${error.message}`);
    }
  });
}

function field(name, label, text, read) {
  const id = newId("field");
  const input = el("textarea", { id, rows: "1", dir: "auto" });
  input.value = text;
  const shown = input.value; // line ends as a browser has them
  const element = el("div", { class: "field" }, el("label", { for: id }, label), input);
  return { name, element, isChanged: () => input.value !== shown, read: () => read(input.value) };
}

function changed(fields) {
  return Object.fromEntries(
    fields.filter((each) => each.isChanged()).map((each) => [each.name, each.read()]),
  );
}
