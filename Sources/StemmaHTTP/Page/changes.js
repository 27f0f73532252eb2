// What follows a change: news of it, and taking it back.
import { post } from "./api.js";
import { author } from "./author.js";
import { count } from "./format.js";
import { notify } from "./notice.js";

export const changed = () => window.dispatchEvent(new Event("stemma:changed"));

export const takeBack = (commits, onDone) => ({
  label: "Undo",
  run: async () => {
    try {
      let events = 0;
      for (const commit of commits.filter(Boolean).reverse()) {
        const path = `/v1/commits/${encodeURIComponent(commit)}/undo`;
        events += (await post(path, { author: author() }, {})).events;
      }
      notify(events > 0 ? `Taken back by ${count(events, "event")}.` : "There was nothing to take back.");
    } catch (error) {
      notify(error.message, { isBad: true });
    }
    changed();
    onDone();
  },
});
