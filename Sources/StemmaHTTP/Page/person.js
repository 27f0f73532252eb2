// Who changes things here, and how a change is taken back.
import { post } from "./api.js";
import { announce, notify } from "./notice.js";

const name = "stemma.author";

export const author = () => localStorage.getItem(name) ?? "";

export const rememberAuthor = (value) => localStorage.setItem(name, value);

/** The action of a notice: takes the commits back, the last one first, and calls `onDone`. */
export const takeBack = (commits, onDone) => ({
  label: "Undo",
  run: async () => {
    try {
      for (const commit of commits.toReversed()) {
        await post(`/v1/commits/${encodeURIComponent(commit)}/undo`, { author: author() }, {});
      }
      announce("Taken back.");
    } catch (error) {
      notify(error.message, { isBad: true });
    }
    window.dispatchEvent(new Event("stemma:changed"));
    onDone();
  },
});
