// What has arrived since the monitor is open, bounded: kept, paused, filtered and forgotten here, shown elsewhere.

/** @import { Summary } from '../types.js' */

/** How many are kept; the oldest leave. */
export const MOST = 2_000;

/**
 * @typedef {object} Arrival
 * @property {Summary | null} message Null for a gap.
 * @property {boolean} gap Whether it only says that the connection was lost here.
 * @property {boolean} deleted
 * @property {number} told When it was told, in milliseconds of `performance.now()`; -Infinity for what was there before.
 * @property {string} text What the filter looks at, in lower case.
 */

export class Arrivals {
  /** @type {Arrival[]} Newest first. */
  #kept = [];
  /** @type {Arrival[]} Told, and not yet taken in; oldest first. */
  #waiting = [];
  /** How many are waiting, also of those that were too many to keep. */
  waiting = 0;
  /**
   * All that were told lately, also those that were cleared away: after a connection the last ones are told again.
   * @type {Map<string, Arrival>}
   */
  #known = new Map();
  #mayMiss = false;

  /** The connection stands again: what comes next shows whether something was missed. */
  resumed() {
    this.#mayMiss = this.#known.size > 0;
  }

  /**
   * Returns whether it is one that was not told before.
   * @param {Summary} message
   * @param {number} told
   */
  add(message, told) {
    const key = `${message.mailbox}\n${message.id}`;
    const known = this.#known.has(key);
    // The last messages are told again oldest first. If even that one is unknown, there may have been others before.
    if (this.#mayMiss && !known) this.#queue({ message: null, gap: true, deleted: false, told, text: '' });
    this.#mayMiss = false;
    if (known) return false;
    const text = [message.mailbox, message.from, ...message.to, message.subject].join('\n').toLowerCase();
    const arrival = { message, gap: false, deleted: false, told, text };
    this.#queue(arrival);
    this.waiting += 1;
    this.#known.set(key, arrival);
    if (this.#known.size > 2 * MOST) this.#known.delete(/** @type {string} */ (this.#known.keys().next().value));
    return true;
  }

  /**
   * Returns whether anything changed.
   * @param {string} mailbox
   * @param {string} id
   */
  delete(mailbox, id) {
    const arrival = this.#known.get(`${mailbox}\n${id}`);
    if (!arrival || arrival.deleted) return false;
    arrival.deleted = true;
    return true;
  }

  /** Takes in what waits. */
  take() {
    if (this.#waiting.length > 0) this.#kept = [...this.#waiting.toReversed(), ...this.#kept].slice(0, MOST);
    this.#waiting = [];
    this.waiting = 0;
  }

  /** Forgets all that is shown or waits. */
  clear() {
    this.take();
    this.#kept = [];
  }

  get size() {
    return this.#kept.length;
  }

  /**
   * Those in which every word occurs, newest first.
   * @param {string} filter
   * @returns {readonly Arrival[]}
   */
  matching(filter) {
    const words = filter.toLowerCase().split(/\s+/u).filter(Boolean);
    return words.length === 0 ? this.#kept : this.#kept.filter(({ text }) => words.every((word) => text.includes(word)));
  }

  /** @param {Arrival} arrival */
  #queue(arrival) {
    this.#waiting.push(arrival);
    // Not at every one: that would move the whole array each time.
    if (this.#waiting.length > 2 * MOST) this.#waiting = this.#waiting.slice(-MOST);
  }
}
