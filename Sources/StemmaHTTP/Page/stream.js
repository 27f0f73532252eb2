// Server-sent events over fetch, because EventSource cannot send an Authorization header.
import { request } from "./api.js";
import { address } from "./route.js";

const fieldOf = (block, name) => new RegExp(`^${name}: ?(.*)$`, "m").exec(block)?.[1];

const blocks = async function* (response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (rest + value.replaceAll("\r", "")).split("\n\n");
    rest = parts.pop();
    yield* parts;
  }
};

export const follow = async (path, parameters, last, signal, onEvent, onState) => {
  for (let wait = 500; !signal.aborted; wait = Math.min(wait * 2, 30000)) {
    try {
      const headers = { Accept: "text/event-stream", ...(last ? { "Last-Event-ID": last } : {}) };
      const response = await request(address(path, parameters), { headers, signal });
      onState(true);
      for await (const block of blocks(response)) {
        wait = 500;
        last = fieldOf(block, "id") ?? last;
        const text = fieldOf(block, "data");
        if (text) onEvent(JSON.parse(text));
      }
    } catch (error) {
      if (signal.aborted || error.status === 401 || error.status === 403) return;
    }
    onState(false);
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
};
