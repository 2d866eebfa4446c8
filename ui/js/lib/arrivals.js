// The messages that arrived while the monitor is open: a bounded list that can be paused, filtered and cleared.

/** @import { Summary } from '../types.js' */

import { fold, matcher } from './filter.js';

/** The maximum number of arrivals; the oldest are removed. */
export const MAX_ARRIVALS = 2_000;

/**
 * @typedef {object} Arrival
 * @property {string} key
 * @property {Summary | null} message Null for a gap, when there was no connection.
 * @property {boolean} deleted
 * @property {number} receivedAt In milliseconds of `performance.now()`; -Infinity for messages that arrived before the page was opened.
 * @property {string} text The text that the filter searches, folded.
 */

export class Arrivals {
  /** @type {Arrival[]} Shown, newest first. */
  #shown = [];
  /** @type {Arrival[]} Received but not yet shown; oldest first. */
  #waiting = [];
  /** The number of waiting arrivals, including those above the limit. */
  waiting = 0;
  /**
   * Recent arrivals by key, including cleared ones: after a reconnect the server sends the last messages again.
   * @type {Map<string, Arrival>}
   */
  #known = new Map();
  #mayMiss = false;
  #gaps = 0;

  /** Called after a reconnect. The next message shows whether some were missed. */
  reconnected() {
    this.#mayMiss = this.#known.size > 0;
  }

  /**
   * Adds an arrival. Returns false if it was received before.
   * @param {Summary} message
   * @param {number} receivedAt
   */
  add(message, receivedAt) {
    const key = `${message.mailbox}\n${message.id}`;
    const known = this.#known.has(key);
    // The server sends the last messages again, oldest first. If the first is unknown, others before it may be missing.
    if (this.#mayMiss && !known) this.#queue({ key: `gap ${++this.#gaps}`, message: null, deleted: false, receivedAt, text: '' });
    this.#mayMiss = false;
    if (known) return false;
    const text = fold([message.mailbox, message.from, ...message.to, message.subject].join('\n'));
    const arrival = { key, message, deleted: false, receivedAt, text };
    this.#queue(arrival);
    this.waiting += 1;
    this.#known.set(key, arrival);
    if (this.#known.size > 2 * MAX_ARRIVALS) this.#known.delete(/** @type {string} */ (this.#known.keys().next().value));
    return true;
  }

  /**
   * Marks an arrival as deleted. Returns whether anything changed.
   * @param {string} mailbox
   * @param {string} id
   */
  delete(mailbox, id) {
    const arrival = this.#known.get(`${mailbox}\n${id}`);
    if (!arrival || arrival.deleted) return false;
    arrival.deleted = true;
    return true;
  }

  /** Shows the waiting arrivals, and returns them. */
  take() {
    const taken = this.#waiting;
    if (taken.length > 0) this.#shown = [...taken.toReversed(), ...this.#shown].slice(0, MAX_ARRIVALS);
    this.#waiting = [];
    this.waiting = 0;
    return taken;
  }

  /** Removes all shown and waiting arrivals. */
  clear() {
    this.take();
    this.#shown = [];
  }

  get size() {
    return this.#shown.length;
  }

  /**
   * Returns the arrivals that match the filter, newest first.
   * @param {ReturnType<typeof matcher>} filter
   * @returns {readonly Arrival[]}
   */
  matching(filter) {
    return filter ? this.#shown.filter(({ text }) => filter(text)) : this.#shown;
  }

  /** @param {Arrival} arrival */
  #queue(arrival) {
    this.#waiting.push(arrival);
    // Not for every arrival: that would copy the whole array each time.
    if (this.#waiting.length > 2 * MAX_ARRIVALS) this.#waiting = this.#waiting.slice(-MAX_ARRIVALS);
  }
}
