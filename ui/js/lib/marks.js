// Which messages of a mailbox count as read: shown at once, told the server, and told the other pages of this browser,
// which hear of it from nobody else.

/** @import { Entries, Entry } from './entries.js' */

import * as api from './api.js';
import { chunks } from './batch.js';

const CHANNEL = 'restante';

export class Marks {
  #entries;
  #changed;
  /** The messages whose mark the server is being told: by which turn, and what it knows until then. @type {Map<string, { turn: symbol, known: boolean }>} */
  #turns = new Map();
  /** Ends when the server was told all so far. @type {Promise<void>} */
  #sent = Promise.resolve();
  /** @type {BroadcastChannel | null} */
  #channel = null;

  /**
   * @param {Entries} entries
   * @param {() => void} changed What to do when marks are different.
   */
  constructor(entries, changed) {
    this.#entries = entries;
    this.#changed = changed;
  }

  /**
   * Listens to other pages.
   * @param {() => string} mailbox
   * @param {AbortSignal} signal
   */
  listen(mailbox, signal) {
    const channel = this.#channel = new BroadcastChannel(CHANNEL);
    channel.onmessage = ({ data }) => data.mailbox === mailbox() && this.#heard(data);
    signal.addEventListener('abort', () => {
      this.#channel = null;
      channel.close();
    });
  }

  /**
   * Takes over what the server says, unless it is about to hear something else.
   * @param {Entry} entry
   * @param {boolean} seen
   */
  learn(entry, seen) {
    if (!this.#turns.has(entry.id)) this.#entries.mark(entry, seen);
  }

  /**
   * Marks messages. Where that fails it is taken back, and thrown.
   * @param {string} mailbox
   * @param {Entry[]} entries
   * @param {boolean} seen
   */
  async mark(mailbox, entries, seen) {
    const changed = entries.filter((entry) => entry.seen !== seen);
    if (changed.length === 0) return;
    const turn = Symbol('turn');
    for (const entry of changed) {
      this.#entries.mark(entry, seen);
      this.#turns.set(entry.id, { turn, known: this.#turns.get(entry.id)?.known ?? !seen });
    }
    this.#changed();
    // One after the other: of two marks of a message the later one counts, for the server too.
    const sent = this.#sent.then(() => this.#send(mailbox, changed.map(({ id }) => id), seen));
    this.#sent = sent.catch(() => {});
    const problem = await sent.then(() => null, (error) => ({ error }));
    for (const entry of changed) this.#settle(entry, turn, problem ? null : seen);
    this.#changed();
    if (problem) throw problem.error;
  }

  /**
   * A turn is over. If a later one is under way, that decides what is shown.
   * @param {Entry} entry
   * @param {symbol} turn
   * @param {boolean | null} told What the server knows now; null when it was not told.
   */
  #settle(entry, turn, told) {
    const last = this.#turns.get(entry.id);
    if (!last) return;
    last.known = told ?? last.known;
    if (last.turn !== turn) return;
    this.#turns.delete(entry.id);
    this.#entries.mark(entry, last.known);
  }

  /**
   * @param {string} mailbox
   * @param {string[]} ids
   * @param {boolean} seen
   */
  async #send(mailbox, ids, seen) {
    for (const some of chunks(ids, api.MOST_IDS)) {
      await api.markAll(mailbox, some, seen);
      this.#channel?.postMessage({ mailbox, ids: some, seen });
    }
  }

  /** @param {{ ids: string[], seen: boolean }} told */
  #heard({ ids, seen }) {
    for (const id of ids) {
      const entry = this.#entries.find(id);
      if (entry) this.learn(entry, seen);
    }
    this.#changed();
  }
}
