// Addresses of the page: #/view/part/part?query. Parts are percent-encoded; a key keeps its own encoding.

/** A query from an object whose members are texts, arrays of texts, or absent. */
export const query = (members) => {
  const result = new URLSearchParams();
  for (const [name, value] of Object.entries(members ?? {})) {
    for (const item of Array.isArray(value) ? value : [value]) {
      if (item !== undefined && item !== null && item !== "" && item !== false) result.append(name, String(item));
    }
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

const join = (path, parameters) => {
  const text = String(parameters instanceof URLSearchParams ? parameters : query(parameters));
  return text ? `${path}?${text}` : path;
};

export const address = join;

export const parse = (hash) => {
  const [path, ...rest] = hash.replace(/^#\/?/, "").split("?");
  const [view, ...parts] = path.split("/").filter(Boolean);
  return { view: view ?? "overview", parts, query: new URLSearchParams(rest.join("?")) };
};

export const link = (path, parameters) => join(`#/${path}`, parameters);

export const modelLink = (model, parameters) => link(`records/${encodeURIComponent(model)}`, parameters);

export const recordLink = (model, form, parameters) =>
  link(`records/${encodeURIComponent(model)}/${form}`, parameters);

export const conflictLink = (model, form, parameters) =>
  link(`conflicts/${encodeURIComponent(model)}/${form}`, parameters);

/** An event by its position, or by its name, which counts within a partition. */
export const eventLink = (event, parameters) => link(`events/${encodeURIComponent(event)}`, parameters);

export const go = (hash) => { location.hash = hash; };

/** Changes the address to the state of the view that shows, without a new entry in the browser's history. */
export const settle = (hash) => history.replaceState(null, "", hash);
