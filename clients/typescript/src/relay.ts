/** Waiting for an entry of the relay queue. */

import { WaitTimeout } from "./errors.js";
import type { RelayEntryDetails } from "./records.js";

const DEFAULT_TIMEOUT_MS = 30_000;
/** The pauses between requests. They double up to the maximum. */
const MIN_PAUSE_MS = 50;
const MAX_PAUSE_MS = 1_000;

/** Fetches an entry until it is not sent again. Throws `WaitTimeout` if that takes longer than `timeout` milliseconds. */
export async function waitForRelay(
  fetchEntry: () => Promise<RelayEntryDetails>,
  timeout = DEFAULT_TIMEOUT_MS,
): Promise<RelayEntryDetails> {
  const end = Date.now() + timeout;
  for (let pause = MIN_PAUSE_MS; ; pause = Math.min(pause * 2, MAX_PAUSE_MS)) {
    const entry = await fetchEntry();
    if (entry.state !== "queued" && entry.state !== "sending") return entry;
    const left = end - Date.now();
    if (left <= 0) throw new WaitTimeout(timeoutText(entry), []);
    await new Promise((resolve) => setTimeout(resolve, Math.min(pause, left)));
  }
}

function timeoutText({ id, state, attempts, "last-reply": reply }: RelayEntryDetails): string {
  return `relay entry ${id} is still ${state} after ${attempts} attempts${reply && `: ${reply}`}`;
}
