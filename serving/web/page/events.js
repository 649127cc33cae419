// Server-sent events read with fetch, which unlike EventSource can send a token, and read again after
// a lost connection from the last event that arrived whole.

import { ApiError, ConnectionLost } from "./api.js";
import { parseJson } from "./json.js";

const SILENCE = 45_000; // ms; the server sends a comment every 15 s
const FIRST_WAIT = 400; // ms before the first new attempt; doubled for each further one
const LONGEST_WAIT = 10_000;

/**
 * Yield {id, event, data} for each server-sent event in `body`. One that is cut off is left out.
 *
 * @param {ReadableStream<Uint8Array>} body
 */
export async function* readFrames(body) {
  let rest = "";
  for await (const chunk of chunks(body)) {
    const lines = (rest + chunk).split("\n\n");
    rest = lines.pop();
    for (const frame of lines) yield parseFrame(frame);
  }
}

async function* chunks(body) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  try {
    for (;;) {
      const { done, value } = await inTime(reader.read());
      if (done) return;
      yield decoder.decode(value, { stream: true }).replaceAll("\r", "");
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** Return what `promise` resolves to; a connection that is silent for too long counts as lost. */
async function inTime(promise) {
  let timer;
  const silence = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error("The connection is silent.")), SILENCE);
  });
  try {
    return await Promise.race([promise, silence]);
  } finally {
    clearTimeout(timer);
  }
}

function parseFrame(text) {
  const frame = { id: null, event: "message", data: "" };
  const data = [];
  for (const line of text.split("\n")) {
    const [, field, value] = /^([^:]*):? ?(.*)$/s.exec(line);
    if (field === "id") frame.id = value;
    else if (field === "event") frame.event = value;
    else if (field === "data") data.push(value);
  }
  frame.data = data.join("\n");
  return frame;
}

/**
 * Call `onEvent(event, kind)` for each event after the one with ID `after`, until `signal` is aborted.
 *
 * @param {Api} api
 * @param {string} path
 * @param {Object} options `after`; `onEvent`; `onState`, called with "open" and "lost"; `signal`.
 * @throws {ApiError} The server refuses the request, as for a session that is deleted.
 */
export async function follow(api, path, { after, onEvent, onState, signal }) {
  let last = after;
  const open = () => {
    const headers = { Accept: "text/event-stream", "Last-Event-ID": last };
    return api.open("GET", path, { headers, signal });
  };
  while (!signal.aborted) {
    const response = await retry(open, { onState, signal });
    onState("open");
    try {
      for await (const frame of readFrames(response.body)) {
        if (signal.aborted) return;
        if (frame.id) last = frame.id;
        if (frame.data) handle(frame, onEvent);
      }
    } catch {
      // The connection is lost.
    }
    if (signal.aborted) return;
    onState("lost");
    await pause(waitBefore(0), signal);
  }
}

/**
 * Return what `attempt` resolves to; wait and try again while the server cannot be reached or is too busy.
 *
 * @throws {ApiError} The server refuses the request.
 * @throws {DOMException} `signal` is aborted.
 */
export async function retry(attempt, { onState, signal }) {
  for (let failures = 0; ; failures += 1) {
    signal.throwIfAborted();
    try {
      return await attempt();
    } catch (error) {
      if (signal.aborted || !mayPass(error)) throw error;
    }
    onState("lost");
    await pause(waitBefore(failures), signal);
  }
}

function mayPass(error) {
  if (error instanceof ApiError) return error.status >= 500 || error.status === 429;
  return error instanceof ConnectionLost;
}

/** Call `onEvent`; its mistakes are reported, and are not taken for a lost connection. */
function handle({ data, event }, onEvent) {
  try {
    onEvent(parseJson(data), event);
  } catch (error) {
    reportError(error);
  }
}

function waitBefore(failures) {
  return Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** failures) * (0.75 + Math.random() / 2);
}

/** Wait, but not longer than until the browser is online again or `signal` is aborted. */
function pause(milliseconds, signal) {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      removeEventListener("online", done);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, milliseconds);
    addEventListener("online", done);
    signal.addEventListener("abort", done);
  });
}
