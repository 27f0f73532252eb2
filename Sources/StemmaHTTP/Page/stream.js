// Server-sent events over fetch, because EventSource cannot send an Authorization header.
import { request } from "./api.js";
import { address } from "./route.js";

const parseBlock = (block) => {
  const result = { id: null, data: [] };
  for (const line of block.split("\n")) {
    const [, name, value] = /^(\w+): ?(.*)$/.exec(line) ?? [];
    if (name === "id") result.id = value;
    if (name === "data") result.data.push(value);
  }
  return result;
};

const blocks = async function* (response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (rest + value.replaceAll("\r", "")).split("\n\n");
    rest = parts.pop();
    yield* parts.map(parseBlock);
  }
};

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** Calls `onEvent` with each event after the one with id `last`, until the signal aborts. */
export const follow = async (path, parameters, last, signal, onEvent, onState) => {
  for (let wait = 500; !signal.aborted; wait = Math.min(wait * 2, 30000)) {
    try {
      const headers = { Accept: "text/event-stream", ...(last ? { "Last-Event-ID": last } : {}) };
      const response = await request(address(path, parameters), { headers, signal });
      onState(true);
      for await (const block of blocks(response)) {
        wait = 500;
        last = block.id ?? last;
        if (block.data.length > 0) onEvent(JSON.parse(block.data.join("\n")));
      }
    } catch (error) {
      if (signal.aborted || error.status === 401 || error.status === 403) return;
    }
    onState(false);
    await pause(wait);
  }
};
