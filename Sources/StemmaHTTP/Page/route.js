// Addresses of the page: #/view/name/key?query. Names are percent-encoded; a key keeps its own encoding.

export const query = (members) => {
  const result = new URLSearchParams();
  for (const [name, value] of Object.entries(members ?? {})) {
    [value].flat().filter((item) => item || item === 0).forEach((item) => result.append(name, String(item)));
  }
  return result;
};

/** The parameters with some members replaced; an absent value removes a member. */
export const replaced = (parameters, members) => {
  const result = new URLSearchParams(parameters);
  Object.keys(members).forEach((name) => result.delete(name));
  query(members).forEach((value, name) => result.append(name, value));
  return result;
};

export const address = (path, parameters) => {
  const text = String(parameters instanceof URLSearchParams ? parameters : query(parameters));
  return text ? `${path}?${text}` : path;
};

/** A part of an address that a person has changed need not be percent-encoded UTF-8. */
const decoded = (text) => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
};

export const parse = (hash) => {
  const [path, ...rest] = hash.replace(/^#\/?/, "").split("?");
  const [view, ...parts] = path.split("/").filter(Boolean);
  const name = parts[0] === undefined ? null : decoded(parts[0]);
  const parameters = new URLSearchParams(rest.join("?"));
  return { view: view ?? "overview", name, form: parts[1] ?? null, query: parameters };
};

export const link = (path, parameters) => address(`#/${path}`, parameters);

export const viewLink = (view) => (view === "overview" ? "#/" : link(view));

export const modelLink = (model, parameters) => link(`records/${encodeURIComponent(model)}`, parameters);

const named = (view) => (name, form, parameters) =>
  link(`${view}/${encodeURIComponent(name)}/${form}`, parameters);
export const recordLink = named("records");
export const conflictLink = named("conflicts");
export const eventLink = (event, parameters) => link(`events/${encodeURIComponent(event)}`, parameters);

export const go = (hash) => { location.hash = hash; };

/** Changes the address to the state of the view that shows, without a new entry in the browser's history. */
export const settle = (hash) => history.replaceState(null, "", hash);
