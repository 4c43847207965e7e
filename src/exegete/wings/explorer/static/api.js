// Asking the server: an answer, or an error whose message is one sentence for a person.

const PAGE = Math.random().toString(36).slice(2); // of several tabs this one: its newer questions take the place of older ones

/**
 * @param {string} question as in /api/QUESTION
 * @param {object} [asked] a body; without one it is only read
 * @param {AbortSignal} [signal]
 * @returns {Promise<Response>}
 */
async function send(question, asked, signal) {
  const body = asked && JSON.stringify(asked);
  const headers = { "content-type": "application/json", "exegete-page": PAGE };
  let answer;
  try {
    answer = await fetch(`api/${question}`, body ? { method: "POST", body, headers, signal } : { signal });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Error("the explorer doesn’t answer: is `exegete serve` still running?");
  }
  if (!answer.ok) throw new Error((await answer.json()).error);
  return answer;
}

/** An answer; aborting the signal stops the work for it. @param {string} question @param {object} [asked] @param {AbortSignal} [signal] */
export const ask = async (question, asked, signal) => (await send(question, asked, signal)).json();

/**
 * A long piece of work; `told` hears how far it is. Aborting the signal stops it, here and there.
 * @param {string} question @param {object} asked @param {(said: any) => void} told @param {AbortSignal} signal
 */
export async function follow(question, asked, told, signal) {
  const answer = await send(`follow/${question}`, asked, signal);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let left = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) throw new Error("the work was stopped before its end: ask again");
    const parts = (left + value).split("\n\n");
    left = parts.pop();
    for (const part of parts) {
      const [kind, data] = part.split("\n").map((line) => line.slice(line.indexOf(": ") + 2));
      const said = JSON.parse(data);
      if (kind === "wrong") throw new Error(said.error);
      if (kind === "found") return said;
      told(said);
    }
  }
}

/**
 * Of many questions in a row only the newest matters: it stops the one before, here and at the server. What was stopped changes nothing.
 * @param {(signal: AbortSignal) => Promise<void>} work
 */
export function latest(work) {
  let going = new AbortController();
  const run = async () => {
    going.abort();
    const mine = going = new AbortController();
    try { await work(mine.signal); } catch (error) { if (!mine.signal.aborted) throw error; }
  };
  return Object.assign(run, { stop: () => going.abort() });
}

/**
 * Of many questions in a row only the newest matters, and those on the way are shown, as in a drag: one is on its way, and the last that came meanwhile goes next.
 * @template T @param {() => Promise<T>} work
 * @returns {() => Promise<void>}
 */
export function newest(work) {
  let busy = false, again = false;
  return async function run() {
    if (busy) { again = true; return; }
    busy = true;
    try {
      do { again = false; await work(); } while (again);
    } finally { busy = false; }
  };
}
