// Marks messages as read or unread: in the list at once, on the server, and in other tabs of this browser, for which the server
// has no event.

/** @import { Entries, Entry } from './entries.js' */

import * as api from './api.js';
import { chunks } from './batch.js';

const CHANNEL = 'restante';

export class ReadState {
  #entries;
  #onChange;
  /** Messages whose change is being sent: the last change, and the state on the server until then. @type {Map<string, { change: symbol, serverSeen: boolean }>} */
  #pending = new Map();
  /** Resolves when all changes so far were sent. @type {Promise<void>} */
  #sent = Promise.resolve();
  /** @type {BroadcastChannel | null} */
  #channel = null;

  /**
   * @param {Entries} entries
   * @param {() => void} onChange Called after every change.
   */
  constructor(entries, onChange) {
    this.#entries = entries;
    this.#onChange = onChange;
  }

  /**
   * Receives changes from other tabs.
   * @param {() => string | null} mailbox The mailbox of the list; null for all mailboxes.
   * @param {() => void} changedElsewhere Called if a change may concern other copies of the messages in the list.
   * @param {AbortSignal} signal
   */
  listen(mailbox, changedElsewhere, signal) {
    const channel = this.#channel = new BroadcastChannel(CHANNEL);
    channel.onmessage = ({ data }) => {
      if (data.ids !== null && data.mailbox === mailbox()) this.#apply(data);
      else if (data.mailbox === null || mailbox() === null) changedElsewhere();
    };
    signal.addEventListener('abort', () => {
      this.#channel = null;
      channel.close();
    });
  }

  /**
   * Applies the state of the server, unless a change of the message is being sent.
   * @param {Entry} entry
   * @param {boolean} seen
   */
  update(entry, seen) {
    if (!this.#pending.has(entry.id)) this.#entries.mark(entry, seen);
  }

  /**
   * Marks messages. On an error, reverts the change and throws.
   * @param {string | null} mailbox
   * @param {Entry[]} entries
   * @param {boolean} seen
   */
  async mark(mailbox, entries, seen) {
    const changed = entries.filter((entry) => entry.seen !== seen);
    if (changed.length === 0) return;
    const change = Symbol('change');
    for (const entry of changed) {
      this.#entries.mark(entry, seen);
      this.#pending.set(entry.id, { change, serverSeen: this.#pending.get(entry.id)?.serverSeen ?? !seen });
    }
    this.#onChange();
    // Requests are sent one after the other, so that the last change of a message also wins on the server.
    const sent = this.#sent.then(() => this.#send(mailbox, changed.map(({ id }) => id), seen));
    this.#sent = sent.catch(() => {});
    const problem = await sent.then(() => null, (error) => ({ error }));
    for (const entry of changed) this.#finish(entry, change, problem ? null : seen);
    this.#onChange();
    if (problem) throw problem.error;
  }

  /**
   * Applies that the server has marked all messages of the list.
   * @param {boolean} seen
   */
  markedEverything(seen) {
    for (const entry of this.#entries.shown) this.update(entry, seen);
    this.#channel?.postMessage({ mailbox: null, ids: null, seen });
    this.#onChange();
  }

  /**
   * Ends a change. If a later change of the message is pending, that one determines what is shown.
   * @param {Entry} entry
   * @param {symbol} change
   * @param {boolean | null} serverSeen The state on the server; null if the request failed.
   */
  #finish(entry, change, serverSeen) {
    const last = this.#pending.get(entry.id);
    if (!last) return;
    last.serverSeen = serverSeen ?? last.serverSeen;
    if (last.change !== change) return;
    this.#pending.delete(entry.id);
    this.#entries.mark(entry, last.serverSeen);
  }

  /**
   * @param {string | null} mailbox
   * @param {string[]} ids
   * @param {boolean} seen
   */
  async #send(mailbox, ids, seen) {
    for (const batch of chunks(ids, api.MAX_IDS)) {
      await api.markAll(mailbox, batch, seen);
      this.#channel?.postMessage({ mailbox, ids: batch, seen });
    }
  }

  /** @param {{ ids: string[], seen: boolean }} change */
  #apply({ ids, seen }) {
    for (const id of ids) {
      const entry = this.#entries.find(id);
      if (entry) this.update(entry, seen);
    }
    this.#onChange();
  }
}
