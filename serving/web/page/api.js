// Requests to the server, relative to the page's own address, with the token if one is needed.

import { parseJson } from "./json.js";
import { keepToken, readToken } from "./token.js";

/** A response that is not a success. */
export class ApiError extends Error {
  constructor(status, type, message) {
    super(message);
    this.name = "ApiError";
    this.status = status;
    this.type = type;
  }
}

/** The server cannot be reached. */
export class ConnectionLost extends Error {
  constructor() {
    super("The server cannot be reached.");
    this.name = "ConnectionLost";
  }
}

export class Api {
  #askToken;
  #asking = null;

  /** @param {(wrong: boolean) => Promise<string>} askToken Asks the person for the server's token. */
  constructor(askToken) {
    this.#askToken = askToken;
  }

  /** Return the JSON of a response; null if it has none. */
  async json(method, path, body) {
    const response = await this.open(method, path, { body });
    if (response.status === 204) return null;
    const text = await textOf(response);
    return text ? parseJson(text) : null;
  }

  /** Return the text of a response. */
  async text(path) {
    return textOf(await this.open("GET", path));
  }

  /**
   * Return a successful response. Asks for the token, and again until it is right.
   *
   * @throws {ApiError} The server refuses the request.
   * @throws {ConnectionLost} There is no response.
   */
  async open(method, path, { body, headers = {}, signal } = {}) {
    for (;;) {
      const token = readToken();
      const response = await this.#send(method, path, { body, headers, signal, token });
      if (response.ok) return response;
      if (response.status !== 401) throw await errorOf(response);
      await this.#newToken(token);
    }
  }

  async #send(method, path, { body, headers, signal, token }) {
    const all = { ...headers };
    if (token) all.Authorization = `Bearer ${token}`;
    if (body !== undefined) all["Content-Type"] = "application/json";
    const content = body === undefined ? undefined : JSON.stringify(body);
    try {
      return await fetch(new URL(path, document.baseURI), {
        method,
        headers: all,
        body: content,
        signal,
        cache: "no-store",
        credentials: "same-origin",
      });
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new ConnectionLost();
    }
  }

  /** Ask for a token, once for all requests that wait for it, unless another one is there by now. */
  async #newToken(refused) {
    if (readToken() !== refused) return;
    this.#asking ??= this.#askToken(refused !== null).finally(() => (this.#asking = null));
    keepToken(await this.#asking);
  }
}

async function textOf(response) {
  try {
    return await response.text();
  } catch {
    throw new ConnectionLost();
  }
}

async function errorOf(response) {
  try {
    const { error } = await response.json();
    const failed = response.status >= 500 && error.request_id; // what the server's log has too
    const message = failed ? `${error.message} (request ${error.request_id})` : error.message;
    return new ApiError(response.status, error.type, message);
  } catch {
    return new ApiError(response.status, "http_error", `The server answered ${response.status}.`);
  }
}

/** Return the path of a session, or of something in it. */
export function sessionPath(id, ...rest) {
  return ["sessions", encodeURIComponent(id), ...rest].join("/");
}
