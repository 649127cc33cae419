// The fields for an answer, made from its JSON Schema.

import { button, el, newId } from "./dom.js";
import { longJson, parseJson } from "./json.js";

const INPUTS = {
  date: "date",
  "date-time": "datetime-local",
  time: "time",
  email: "email",
  uri: "url",
  password: "password",
};
const YES_OR_NO = [
  [true, "Yes"],
  [false, "No"],
];
/** In a form, where a tick cannot be left open. */
const OPEN = { type: undefined, oneOf: YES_OR_NO.map(([value, title]) => ({ const: value, title })) };
const MOST_BUTTONS = 4;
const MOST_DEPTH = 3; // of forms in forms; what is deeper is written as JSON

/**
 * The fields for one answer.
 *
 * @param {Object} schema The JSON Schema of the answer.
 * @param {(value: any) => void} answer Takes an answer whose fields are filled in.
 * @param {(problem: string, field: Element) => void} fail Shows what is wrong, below a field.
 */
export function answerFields(schema, answer, fail) {
  const { plain, nullable } = readSchema(schema, schema);
  const choose = (value) => (event) => {
    for (const each of element.querySelectorAll("button")) each.classList.remove("chosen");
    event.currentTarget.classList.add("chosen");
    answer(value);
  };
  const leave = nullable ? button("Leave open", choose(null)) : null;
  const choices = plain.type === "boolean" ? YES_OR_NO : choicesOf(plain);
  const element = el("div", {});
  if (choices && choices.length <= MOST_BUTTONS) {
    const buttons = choices.map(([value, name]) => button(name, choose(value), { class: "primary" }));
    element.className = "buttons";
    element.append(...buttons, leave ?? "");
    return element;
  }
  const form = plain.type === "object" && Object.keys(plain.properties ?? {}).length > 0;
  const single = { plain, label: plain.description ?? plain.title, required: true };
  const fields = form ? formFields(plain, schema) : [fieldOf("Your answer", single, schema)];
  const send = () => {
    const { problem, value, at } = readFields(fields);
    if (problem !== null) {
      at.input.focus();
      fail(`${at.label}: ${problem}`, at.element);
    } else answer(form ? value : value[fields[0].name]);
  };
  element.className = "question-fields";
  element.append(...fields.map((each) => each.element));
  element.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.isComposing || event.target.tagName !== "INPUT") return;
    event.preventDefault();
    send();
  });
  element.append(
    el("div", { class: "buttons" }, button("Answer", send, { class: "primary" }), leave),
  );
  return element;
}

/** Return the values of fields by their names, or what is wrong with one, and with which. */
function readFields(fields) {
  const values = {};
  for (const field of fields) {
    const { problem, value, at = field } = field.read();
    field.input?.setAttribute("aria-invalid", String(problem !== null));
    if (problem !== null) return { problem, at };
    if (value !== undefined) values[field.name] = value;
  }
  return { problem: null, value: values };
}

function formFields(form, root, depth = 0) {
  const required = new Set(form.required ?? []);
  return Object.entries(form.properties).map(([name, part]) => {
    const { plain, nullable } = readSchema(part, root);
    const preset = form.default?.[name];
    const schema = preset === undefined ? plain : { ...plain, default: preset };
    const label = labelOf(name, part);
    const about = { plain: schema, nullable, label, required: required.has(name) && !nullable };
    const inner = depth < MOST_DEPTH && Object.keys(plain.properties ?? {}).length > 0;
    return inner ? groupOf(name, about, root, depth) : fieldOf(name, about, root);
  });
}

/** Return the title of the field, and what it is. */
function labelOf(name, part) {
  const { title = isReference(part) ? titled(name) : name, description = "" } = part;
  if (description.toLowerCase().includes(title.toLowerCase())) return description;
  return description ? `${title}: ${description}` : title;
}

function isReference({ $ref, anyOf, oneOf }) {
  return $ref !== undefined || (anyOf ?? oneOf ?? []).some((member) => member.$ref !== undefined);
}

/** Return the fields of an object in a form as one; it is left out if nothing was filled in. */
function groupOf(name, { plain, nullable, label, required }, root, depth) {
  const fields = formFields(plain, root, depth + 1);
  const optional = required ? "" : " (optional)";
  const element = el(
    "fieldset",
    { class: "field" },
    el("legend", { dir: "auto" }, `${label}${optional}`),
    ...fields.map((each) => each.element),
  );
  const inputs = [...element.querySelectorAll("input, select, textarea")];
  const filledIn = () => inputs.map((each) => `${each.value}${each.checked}`).join("\n");
  const before = filledIn();
  const left = () => !required && filledIn() === before;
  const read = () =>
    left() ? { problem: null, value: nullable ? null : undefined } : readFields(fields);
  return { name, label, element, read };
}

/** Return the name of a field as a title, where that of its class would say something else. */
function titled(name) {
  return name.replaceAll("_", " ").replace(/(?<!\p{L})\p{L}/gu, (letter) => letter.toUpperCase());
}

/** Return one field: its label, its input, and what reads it. */
function fieldOf(name, { plain, nullable = false, label = name, required }, root) {
  const schema = nullable && plain.type === "boolean" ? { ...plain, ...OPEN } : plain;
  const items = schema.type === "array" ? readSchema(schema.items ?? {}, root).plain : null;
  const { input, read } = items ? listInput(schema, items) : inputFor(schema, required);
  const id = newId("answer");
  input.id = id;
  const optional = required || schema.type === "boolean" ? "" : " (optional)";
  const element = el(
    "div",
    { class: schema.type === "boolean" ? "field check" : "field" },
    el("label", { for: id, dir: "auto" }, `${label}${optional}`),
    input,
  );
  const checked = () => {
    if (!input.checkValidity()) return { problem: input.validationMessage };
    try {
      const value = read();
      if (nullable && (value === undefined || value.length === 0))
        return { problem: null, value: null };
      if (value === undefined && required) return { problem: "It is empty." };
      return { problem: null, value };
    } catch (error) {
      return { problem: error instanceof SyntaxError ? "This is not JSON." : error.message };
    }
  };
  return { name, label, input, element, read: checked };
}

function inputFor(schema, required) {
  const { type, default: preset } = schema;
  const choices = choicesOf(schema);
  const mustFill = required || (preset !== undefined && preset !== null); // or the preset would return
  if (choices) return choiceInput(choices, preset);
  if (type === "boolean") {
    const input = el("input", { type: "checkbox", checked: preset === true });
    return { input, read: () => input.checked };
  }
  const limits = { required, minlength: schema.minLength, maxlength: schema.maxLength };
  if (type === "integer" || type === "number") {
    const step = type === "integer" ? 1 : "any";
    const range = { min: schema.minimum, max: schema.maximum, step };
    const input = el("input", { type: "number", ...range, required: mustFill, value: preset });
    return { input, read: () => (input.value === "" ? undefined : parseJson(input.value)) };
  }
  if (type === "string") {
    const kind = INPUTS[schema.format] ?? "text";
    const input = el("input", { type: kind, ...limits, value: preset, autocomplete: "off" });
    return { input, read: () => input.value || (typeof preset === "string" ? "" : undefined) };
  }
  if (!takesText(schema)) return jsonInput(preset);
  const input = el("input", { type: "text", required: mustFill, value: asText(preset), autocomplete: "off" });
  const meaning = isAnything(schema) ? jsonOr : (text) => text; // as it was typed
  return { input, read: () => (input.value ? meaning(input.value) : undefined) };
}

/** Return whether a text is one of several kinds of answers that fit, as for a decimal number. */
function takesText(schema) {
  const members = schema.anyOf ?? schema.oneOf ?? [schema];
  return isAnything(schema) || members.some((one) => one.type === "string");
}

function isAnything({ anyOf, oneOf, type }) {
  return type === undefined && (anyOf ?? oneOf ?? []).length === 0;
}

function asText(preset) {
  return typeof preset === "string" ? preset : preset == null ? null : longJson(preset);
}

function jsonOr(text) {
  try {
    return parseJson(text);
  } catch {
    return text;
  }
}

function jsonInput(preset) {
  const input = el("textarea", { rows: 3, spellcheck: "false", placeholder: "JSON" });
  if (preset !== undefined && preset !== null) input.value = longJson(preset);
  return { input, read: () => (input.value.trim() ? parseJson(input.value) : undefined) };
}

/** Several choices, a text or a number on each line, or JSON. */
function listInput({ default: preset }, items) {
  const choices = choicesOf(items);
  if (choices) {
    const input = el("select", { multiple: true });
    for (const [index, [value, name]] of choices.entries())
      input.append(el("option", { value: index, selected: preset?.includes(value) }, name));
    return { input, read: () => [...input.selectedOptions].map((each) => choices[each.value][0]) };
  }
  const isText = takesText(items) && !isAnything(items);
  if (!isText && items.type !== "integer" && items.type !== "number") return jsonInput(preset);
  const input = el("textarea", { rows: 3, placeholder: "One on each line" });
  input.value = preset?.join("\n") ?? "";
  const parts = () => input.value.split(items.type === "string" ? "\n" : /[\n,]/);
  const given = () => parts().filter((part) => part.trim());
  return { input, read: () => given().map(isText ? (part) => part.trim() : numberIn) };
}

function numberIn(text) {
  try {
    return parseJson(text);
  } catch {
    throw new RangeError(`${text.trim()} is not a number.`);
  }
}

function choiceInput(choices, preset) {
  const chosen = choices.some(([value]) => value === preset);
  const input = el("select", {}, chosen ? null : el("option", { value: "" }, "Choose…"));
  for (const [index, [value, name]] of choices.entries())
    input.append(el("option", { value: index, selected: value === preset }, name));
  return { input, read: () => choices[input.value]?.[0] };
}

/** Return the values to choose from with their names, or null. */
function choicesOf(schema) {
  if (schema.type === "boolean") return null;
  if ("const" in schema) return [[schema.const, nameOf(schema.const)]];
  const titled = schema.oneOf ?? schema.anyOf ?? [];
  if (titled.length > 0 && titled.every((each) => "const" in each))
    return titled.map((each) => [each.const, String(each.title ?? nameOf(each.const))]);
  return schema.enum?.map((value, index) => [value, schema.enumNames?.[index] ?? nameOf(value)]) ?? null;
}

function nameOf(value) {
  return value === "" ? "(empty)" : String(value);
}

/** Return a schema without a reference and without null, and whether null fits it. */
function readSchema(schema, root) {
  const found = resolved(schema, root);
  const members = found.anyOf ?? found.oneOf ?? [];
  const others = members.filter((member) => member.type !== "null");
  if (others.length !== 1 || others.length === members.length)
    return { plain: found, nullable: false };
  const { anyOf, oneOf, ...rest } = found;
  return { plain: { ...resolved(others[0], root), ...rest }, nullable: true };
}

function resolved(schema, root) {
  let found = schema;
  for (let depth = 0; depth < 8 && typeof found.$ref === "string"; depth += 1) {
    const { $ref: reference, ...rest } = found;
    found = { ...root.$defs?.[reference.split("/").at(-1)], ...rest };
  }
  return found;
}
