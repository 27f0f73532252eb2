// Server-sent events over fetch, because EventSource cannot send an Authorization header.
import { request } from "./api.js";
import { address } from "./route.js";

const fieldOf = (block, name) => new RegExp(`^${name}: ?(.*)$`, "m").exec(block)?.[1];

// The server sends something every 15 seconds. A longer silence is a dead connection that nobody has closed.
const longestSilence = 40000;
const longestPause = 5000;

const blocks = async function* (response, onBytes) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    onBytes();
    const parts = (rest + value.replaceAll("\r", "")).split("\n\n");
    rest = parts.pop();
    yield* parts;
  }
};

/** Yields the blocks of one connection until it ends or falls silent. */
const connection = async function* (url, headers, signal, onOpen) {
  const silence = new AbortController();
  let timer = null;
  const onBytes = () => {
    clearTimeout(timer);
    timer = setTimeout(() => silence.abort(), longestSilence);
  };
  try {
    onBytes();
    const response = await request(url, { headers, signal: AbortSignal.any([signal, silence.signal]) });
    onOpen();
    yield* blocks(response, onBytes);
  } finally {
    clearTimeout(timer);
  }
};

/**
 * Calls `onEvent` with each event after the position `last`, over as many connections as it takes; each
 * continues after the last event that came. `onState` hears whether there is a connection.
 */
export const follow = async (path, parameters, last, signal, onEvent, onState) => {
  const url = address(path, parameters);
  for (let pause = 500; !signal.aborted; pause = Math.min(pause * 2, longestPause)) {
    const headers = { Accept: "text/event-stream", "Last-Event-ID": last };
    try {
      for await (const block of connection(url, headers, signal, () => onState(true))) {
        pause = 500;
        last = fieldOf(block, "id") ?? last;
        const text = fieldOf(block, "data");
        if (text) onEvent(JSON.parse(text));
      }
    } catch (error) {
      if (signal.aborted || error.status === 401 || error.status === 403) return;
    }
    if (signal.aborted) return;
    onState(false);
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
};
