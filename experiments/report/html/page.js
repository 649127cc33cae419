// The pages of runs, made of the data in this file when one is opened; and what sorts and filters.
// Text always becomes a text node, so nothing that a model or a tool wrote is read as HTML.

"use strict";

const NUMBER = new Intl.NumberFormat("en");
const report = document.getElementById("report");
const run = document.getElementById("run");
const WORDS = {
  passed: "passed",
  wrong: "wrong answer",
  crashed: "crashed",
  "rate-limited": "rate limit of the model",
  limit: "reached a limit",
  stuck: "repeated itself",
  waiting: "waits for somebody",
};
const KINDS = {
  earlier: "Before the steps that are kept",
  begin: "A run begins",
  resume: "The run is resumed",
  wait: "The run waits",
  end: "The run ends",
  open: "After the last step",
};

/** Return a new element; attributes that are null or false are left out. */
function el(tag, properties, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (name === "onclick") element.addEventListener("click", value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== null && value !== undefined && value !== false)
      element.setAttribute(name, String(value));
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}

function dataOf(id) {
  const block = document.getElementById(id);
  return block === null ? null : JSON.parse(block.textContent);
}

let sharedValues = null;

function shared(place) {
  sharedValues ??= dataOf("shared");
  return sharedValues[Number(place)];
}

// --- words ---

const secondsText = (value) =>
  value < 0.995 ? `${Math.round(value * 1000)} ms` : `${value.toFixed(1)} s`;
const costText = (value) => `$${value >= 0.01 ? value.toFixed(2) : value.toPrecision(2)}`;
const placeText = (place) => (place ? [...place.path, place.state].join(" › ") : "");
const plural = (count, noun) => `${NUMBER.format(count)} ${noun}${count === 1 ? "" : "s"}`;

function json(value) {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

function spentText({ seconds, tokens, cost }) {
  const [read, written] = tokens ?? [0, 0];
  const parts = [
    seconds ? secondsText(seconds) : null,
    read || written ? `${NUMBER.format(read)} tokens in, ${NUMBER.format(written)} out` : null,
    cost ? costText(cost) : null,
  ];
  return parts.filter(Boolean).join(" · ");
}

function titleOf(step) {
  const ran = placeText(step.ran);
  if (step.kind === "step") return ran || placeText(step.next) || "A step";
  const reason = step.stop_reason ? `: ${step.stop_reason}` : "";
  const title = `${KINDS[step.kind] ?? step.kind}${reason}`;
  return ran && step.kind !== "begin" ? `${ran} · ${title}` : title;
}

// --- a run ---

function text(value, properties = {}) {
  return el("p", { class: "text", dir: "auto", ...properties }, value);
}

function block(who, value, look = "") {
  return el("div", { class: `block ${look}` }, el("div", { class: "who" }, who), text(value));
}

function details(title, ...children) {
  return el("details", null, el("summary", null, title), ...children);
}

function pre(label, value) {
  return el("pre", { tabindex: 0, role: "group", "aria-label": label }, json(value));
}

function message(known, place, look) {
  const said = typeof place === "string" ? shared(place) : known[place];
  const who = [said.role, said.name, said.is_error ? "error" : null].filter(Boolean).join(" ");
  const calls = (said.calls ?? []).map(({ name, args }) => `${name}(${JSON.stringify(args)})`);
  const parts = [said.content, ...calls, ...(said.files ?? []).map((file) => `[${file}]`)];
  return block(look === "new" ? `${who} (new)` : who, parts.filter(Boolean).join("\n"), look);
}

/** Show the messages that a model was sent: what is new since its last call, and all of them. */
function prompt(known, sent, before) {
  const old = new Set(before ?? []);
  const fresh = before === null ? [] : sent.filter((place) => !old.has(place));
  const now = new Set(sent);
  const gone = [...old].filter((place) => !now.has(place)).length;
  const about = [plural(sent.length, "message")];
  if (before !== null) about.push(`${fresh.length} new`);
  if (gone) about.push(`${gone} not sent any more`);
  const look = (place) => (before !== null && !old.has(place) ? "new" : "");
  return details(
    `Prompt as sent (${about.join(", ")})`,
    sent.map((place) => message(known, place, look(place))),
  );
}

function offered(call) {
  const found = call.tools.map(shared);
  const names = found.map(({ name }) => name).join(", ");
  return details(`Tools offered (${names})`, pre("Tools", found));
}

function modelCall(known, call, before) {
  const facts = [call.model, call.state?.join(" › "), spentText(call), call.finish];
  const answer = [
    call.thoughts ? block("thought", call.thoughts) : null,
    call.text ? block("model", call.text) : null,
    (call.actions ?? []).map(({ name, args }) =>
      block("model calls", `${name}(${JSON.stringify(args)})`),
    ),
  ];
  return el(
    "div",
    { class: "model" },
    el("p", { class: "muted" }, facts.filter(Boolean).join(" · ")),
    prompt(known, call.prompt ?? [], before),
    call.tools ? offered(call) : null,
    call.schema !== undefined
      ? details("Data that was asked for", pre("Schema", shared(call.schema)))
      : null,
    call.attempts ? details(plural(call.attempts.length, "attempt"), pre("Attempts", call.attempts)) : null,
    answer,
    call.error ? el("p", { class: "bad" }, `${call.error.type}: ${call.error.message}`) : null,
    call.cut ? el("p", { class: "bad" }, "The call was cut off.") : null,
  );
}

function toolCall({ name, args, state, result, seconds }) {
  const failed = state === "failed" || state === "refused";
  const took = seconds ? ` · ${secondsText(seconds)}` : "";
  return el(
    "div",
    { class: "call" },
    el("div", { class: failed ? "bad" : "who" }, `Tool ${name}: ${state}${took}`),
    el("p", { class: "text mono" }, JSON.stringify(args)),
    result === undefined ? null : text(`→ ${result}`, { class: "text mono" }),
  );
}

function memoryChanges(step) {
  const parts = [
    ...(step.removed ?? []).map(({ how, messages }) => `${how} ${messages ?? "all"} messages`),
    ...(step.values ?? []).map(({ name, value }) => `${name}: ${json(value)}`),
  ];
  return [
    parts.length ? details("Memory", parts.map((part) => text(part))) : null,
    step.changes
      ? details(
          "State of the run",
          pre("State", step.changes.map((one) => `${one.name}: ${json(one.after)}`).join("\n")),
        )
      : null,
  ];
}

/** Return the element of a step; `before` remembers what the models were last sent. */
function stepElement(found, step, before) {
  const wrong = found.wrong?.step === step.n;
  const trouble = found.troubles.filter(({ step: number }) => number === step.n);
  const look = wrong ? "wrong" : trouble.length ? "trouble" : null;
  const leads = step.kind === "step" && placeText(step.next) !== placeText(step.ran);
  const next = leads ? placeText(step.next) : "";
  const models = (step.models ?? []).map((call) => {
    const key = `${call.branch ?? ""}/${(call.state ?? []).join("/")}`;
    const element = modelCall(found.messages, call, before.get(key) ?? before.get("") ?? null);
    before.set(key, call.prompt ?? []).set("", call.prompt ?? []);
    return element;
  });
  return el(
    "li",
    { class: "step", id: `step-${step.n}`, "data-look": look },
    el(
      "div",
      { class: "step-head", tabindex: -1 },
      el("h3", null, `${step.n}. ${titleOf(step)}${next ? ` → ${next}` : ""}`),
      el("span", { class: "muted" }, spentText(step)),
    ),
    wrong ? el("p", { class: "bad" }, `✗ ${found.wrong.why}`) : null,
    trouble.map(({ why }) => el("p", { class: "bad" }, `! ${why}`)),
    step.failure ? el("p", { class: "bad text" }, step.failure) : null,
    step.waits_for
      ? el("p", null, `Asked: ${[...step.waits_for.calls, ...step.waits_for.questions].join(", ")}`)
      : null,
    (step.said ?? []).map(({ role, content }) => block(role, content)),
    models,
    (step.calls ?? []).map(toolCall),
    (step.branches ?? []).map(({ name, result }) => block(`branch ${name}`, result)),
    memoryChanges(step),
  );
}

const addressOf = (id) => `#case-${encodeURIComponent(id)}`;

function stepLink(id, { step, why }, title) {
  return el("a", { href: `${addressOf(id)}/${step}` }, `Step ${step}: ${title} ${why}`);
}

function wentWrong(found) {
  if (found.wrong === null || found.wrong === undefined) return null;
  const steps = found.sessions.flatMap((session) => session.steps);
  const title = titleOf(steps.find((step) => step.n === found.wrong.step));
  const others = found.troubles.filter(({ step }) => step !== found.wrong.step);
  return el(
    "div",
    { class: "went-wrong" },
    el("p", null, el("strong", null, "Where it went wrong: "), stepLink(found.id, found.wrong, `${title}.`)),
    others.length
      ? el("ul", null, others.map((one) => el("li", null, stepLink(found.id, one, ""))))
      : null,
  );
}

function verdict(found) {
  const part = (title, value) =>
    value
      ? el("div", value.length > 500 ? { class: "long" } : null, el("h2", null, title), text(value))
      : null;
  const asked = found.said.length > 1 ? found.said.map((one, at) => `${at + 1}. ${one}`) : found.said;
  return el(
    "div",
    { class: "verdict" },
    part("The task", asked.join("\n")),
    part("Expected", found.expected),
    part("Answer", found.answer || (found.error ? "" : "(empty)")),
    part(found.outcome === "passed" ? "Why it passed" : "Why it did not pass", found.reason),
    part("Error", found.error),
  );
}

function factsOf(found) {
  const facts = [
    plural(found.steps, "step"),
    plural(found.model_calls, "model call"),
    plural(found.tool_calls, "tool call"),
    spentText({ ...found, tokens: [found.input_tokens, found.output_tokens] }),
    found.seconds_waiting ? `waited ${secondsText(found.seconds_waiting)}` : null,
    found.turns > 1 ? plural(found.turns, "turn") : null,
    found.score > 0 && found.score < 1 ? `score ${found.score}` : null,
    found.judged ? "judged by a model" : null,
    found.stop_reason,
    found.tags.length ? `tags: ${found.tags.join(", ")}` : null,
    found.source || null,
  ];
  return facts.filter(Boolean).join(" · ");
}

function copyButton(value) {
  const button = el("button", { type: "button", class: "plain" }, "Copy the test");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(value);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(document.getElementById("test"));
      button.textContent = "Press Ctrl-C to copy";
    }
  });
  return button;
}

function testOf(found) {
  const parts = [];
  if (found.test) {
    const shown = pre("The test", found.test);
    shown.id = "test";
    parts.push(
      el("p", { class: "about" }, "It repeats the last run without its model and its tools."),
      copyButton(found.test),
      shown,
    );
  } else if (found.no_test) {
    parts.push(text(`No test can be made of this run here. ${found.no_test}.`));
  }
  if (found.commands.length)
    parts.push(
      details("Commands, in the folder of the experiment", pre("Commands", found.commands.join("\n"))),
    );
  return parts.length
    ? el("section", { "aria-label": "A test" }, el("h2", null, "Make a test of this"), parts)
    : null;
}

/** Return links to the same task in other cells, as they are in the matrix. */
function others(id) {
  const row = report.querySelector(`.matrix a[href="${addressOf(id)}"]`)?.closest("tr");
  const signs = [...(row?.querySelectorAll("a.sign") ?? [])].map((link) => {
    const copy = link.cloneNode(true);
    if (link.hash === addressOf(id)) copy.setAttribute("aria-current", "true");
    return el("li", null, copy);
  });
  return signs.length > 1
    ? el("ul", { class: "others", "aria-label": "The same task in all cells" }, signs)
    : null;
}

function neighbours(id) {
  const failed = [...report.querySelectorAll(".matrix a.sign:not(.passed)")];
  const at = failed.findIndex((link) => link.hash === addressOf(id));
  const link = (to, label) => (to ? el("a", { href: to.hash }, label) : null);
  return el(
    "nav",
    { class: "way", "aria-label": "Report" },
    el("a", { href: "#matrix" }, "← Report"),
    at < 0 ? null : link(failed[at - 1], "Previous failure"),
    link(failed[at + 1], "Next failure"),
  );
}

function show(id) {
  const found = dataOf(`data-${id}`);
  if (found === null) return false;
  const before = new Map();
  const sessions = found.sessions ?? [];
  const title = `${found.task} · ${found.cell}${found.repeat ? ` · repeat ${found.repeat + 1}` : ""}`;
  run.replaceChildren(
    ...[
      neighbours(id),
      el("h1", null, `${title} `, el("span", { class: `badge ${found.outcome}` }, WORDS[found.outcome])),
      el("p", { class: "facts" }, factsOf(found)),
      others(id),
      wentWrong(found),
      verdict(found),
      found.missing ? el("p", { class: "note" }, found.missing) : null,
      ...sessions.map(({ name, steps }) =>
        el(
          "section",
          { "aria-label": `Session ${name}` },
          el("h2", null, sessions.length > 1 ? `Steps of session ${name}` : "Steps"),
          el("ol", { class: "steps" }, steps.map((step) => stepElement(found, step, before))),
        ),
      ),
      testOf(found),
    ].filter((element) => element !== null),
  );
  run.dataset.shown = id;
  document.title = title;
  return true;
}

// --- the address ---

const reportTitle = document.title;

function route() {
  const [, name, step] = /^#case-([^/]*)(?:\/(\d+))?$/.exec(location.hash) ?? [];
  const id = name === undefined ? undefined : decodeURIComponent(name);
  if (id === undefined || (run.dataset.shown !== id && !show(id))) {
    back();
    return;
  }
  report.hidden = true;
  run.hidden = false;
  run.querySelector(".chosen")?.classList.remove("chosen");
  const chosen = step === undefined ? null : document.getElementById(`step-${step}`);
  if (chosen === null) {
    scrollTo(0, 0);
    run.focus({ preventScroll: true });
    return;
  }
  chosen.classList.add("chosen");
  chosen.scrollIntoView({ block: "start" });
  chosen.querySelector(".step-head").focus({ preventScroll: true });
}

function back() {
  const shown = run.dataset.shown;
  run.hidden = true;
  run.replaceChildren();
  delete run.dataset.shown;
  report.hidden = false;
  document.title = reportTitle;
  if (shown === undefined) return;
  const link = report.querySelector(`.matrix a[href="${addressOf(shown)}"]`);
  link?.focus({ preventScroll: true });
  link?.scrollIntoView({ block: "center", inline: "center" });
}

addEventListener("hashchange", route);

// --- sorting and filtering ---

function sortable(table) {
  const heads = [...table.tHead.rows[0].cells];
  const body = table.tBodies[0];
  const sort = (head, at) => {
    const down = head.getAttribute("aria-sort") !== "descending";
    const value = (row) => {
      const given = row.cells[at]?.dataset.value ?? "";
      return given === "" ? null : Number(given);
    };
    const rows = [...body.rows].sort((a, b) => {
      const [one, other] = [value(a), value(b)];
      if (one === null || other === null) return (one === null) - (other === null);
      return down ? other - one : one - other;
    });
    for (const each of heads) each.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    body.append(...rows);
  };
  heads.forEach((head, at) => {
    const button = el("button", { type: "button" }, head.textContent);
    button.addEventListener("click", () => sort(head, at));
    head.replaceChildren(button);
  });
}

function filters() {
  const rows = [...report.querySelectorAll(".matrix tbody tr")];
  const count = (look) => rows.filter((row) => row.dataset.look === look).length;
  const choose = (looks) => {
    for (const row of rows) row.hidden = looks !== null && !looks.includes(row.dataset.look);
  };
  const choice = (label, looks, checked = false) => {
    const input = el("input", { type: "radio", name: "tasks", checked });
    input.addEventListener("change", () => choose(looks));
    return el("label", null, input, ` ${label}`);
  };
  const differs = count("differs");
  const failed = count("failed") + differs;
  const place = document.getElementById("choices");
  if (failed === 0 || failed === rows.length) return;
  place.append(
    choice(`all tasks (${rows.length})`, null, true),
    choice(`that a cell failed (${failed})`, ["differs", "failed"]),
    choice(`that cells differ in (${differs})`, ["differs"]),
  );
  place.hidden = false;
}

document.getElementById("no-script").remove();
for (const table of report.querySelectorAll("table.sortable")) sortable(table);
filters();
route();
