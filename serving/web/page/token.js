// The token of the server: kept until the tab is closed, or only until the page is left where the browser
// lets a page keep nothing.

const NAME = "agent-brain-token";
let kept = null;

/** Return the token; null if there is none. */
export function readToken() {
  try {
    return sessionStorage.getItem(NAME) ?? kept;
  } catch {
    return kept;
  }
}

export function keepToken(token) {
  kept = token;
  try {
    sessionStorage.setItem(NAME, token);
  } catch {
    // It stays in `kept`.
  }
}
