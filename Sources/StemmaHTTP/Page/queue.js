// The records with conflicts, in the order of the list, so that the merge view knows the next one.
import { get } from "./api.js";
import { keyForm } from "./format.js";
import { query, replaced } from "./route.js";

const identity = ({ model, key }) => `${model}/${keyForm(key)}`;

/** The new groups; conflicts of the last group go into it, because a page can end within a record. */
export const grouped = (groups, conflicts) => {
  const added = [];
  for (const conflict of conflicts) {
    const { model, key } = conflict;
    const last = added.at(-1) ?? groups.at(-1);
    if (last && last.identity === identity(conflict)) last.conflicts.push(conflict);
    else added.push({ identity: identity(conflict), model, key, conflicts: [conflict] });
  }
  return added;
};

let known = { filter: null, groups: [] };

export const remember = (filter, groups) => { known = { filter: String(filter), groups }; };

export const filterOf = (parameters) =>
  query({ model: parameters.getAll("model"), kind: parameters.getAll("kind") });

/** The record after this one; the list is read anew where the merge was opened by its address. */
export const nextAfter = async (filter, record, isDone) => {
  let groups = known.filter === String(filter) ? known.groups : [];
  if (!groups.some((group) => group.identity === record)) {
    groups = grouped([], await get("/v1/conflicts", replaced(filter, { limit: 1000 })));
  }
  const at = groups.findIndex((group) => group.identity === record);
  const rest = groups.filter((group) => group.identity !== record);
  remember(filter, isDone ? rest : groups);
  return rest[at] ?? rest[0];
};
