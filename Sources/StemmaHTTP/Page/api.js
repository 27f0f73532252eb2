// Requests to the server.
import { rememberAuthor } from "./author.js";
import { address } from "./route.js";

const tokenName = "stemma.token";

const problem = (title, status) => Object.assign(new Error(title), { status });

/**
 * Moves a token out of the address, where it would be copied with links and kept in the history;
 * also the author that `stemma ui` proposes.
 */
export const takeToken = () => {
  const found = /^#token=([^&]*)(?:&author=([^&]*))?&?(.*)$/.exec(location.hash);
  if (!found) return;
  sessionStorage.setItem(tokenName, decodeURIComponent(found[1]));
  if (found[2]) rememberAuthor(decodeURIComponent(found[2]));
  history.replaceState(null, "", `${location.pathname}#${found[3] || "/"}`);
};

export const hasToken = () => Boolean(sessionStorage.getItem(tokenName));

export const setToken = (token) => sessionStorage.setItem(tokenName, token);

const authorization = () => {
  const token = sessionStorage.getItem(tokenName);
  return token ? { Authorization: `Bearer ${token}` } : {};
};

let onDenied = () => {};
export const whenDenied = (f) => { onDenied = f; };

let onMissing = () => {};
/** `f` gets the sentence of an answer that lacks events, because corruption hides them. */
export const whenMissing = (f) => { onMissing = f; };

const problemOf = async (response) => {
  const body = await response.json().catch(() => ({}));
  return problem(body.title ?? `The server answered ${response.status}.`, response.status);
};

export const request = async (path, { headers, ...options } = {}) => {
  let response;
  try {
    const all = { ...authorization(), ...headers };
    response = await fetch(path, { ...options, headers: all, cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw problem("The server does not answer.", 0);
  }
  if (response.status === 401) onDenied();
  if (!response.ok) throw await problemOf(response);
  const missing = response.headers.get("Stemma-Missing-Events");
  if (missing) onMissing(missing);
  return response;
};

const nextOf = (response) =>
  /<([^>]*)>\s*;\s*rel="?next"?/.exec(response.headers.get("Link") ?? "")?.[1] ?? null;

export const read = async (path, parameters, options) => {
  const response = await request(address(path, parameters), options);
  return { data: await response.json(), next: nextOf(response), etag: response.headers.get("ETag") };
};

export const get = async (path, parameters, options) => (await read(path, parameters, options)).data;

export const post = async (path, parameters, body, headers) => {
  const response = await request(address(path, parameters), {
    method: "POST",
    headers: { "Content-Type": "application/json", ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
  return response.json();
};

export const pages = (path, parameters, signal) => {
  let next = address(path, parameters);
  return {
    get isDone() { return next === null; },
    async more() {
      const page = await read(next, {}, { signal });
      // Only the path counts: requests stay with the server of the page.
      const { pathname, search } = new URL(page.next ?? "", location.origin);
      next = page.next === null ? null : pathname + search;
      return page.data;
    },
  };
};

let known = null;

export const models = () => {
  known ??= get("/v1/models").catch((error) => { known = null; throw error; });
  return known;
};

export const modelPath = (kind, model, form) => `/v1/${kind}/${encodeURIComponent(model)}/${form}`;
