// What has arrived since the monitor is open, bounded: kept, paused, filtered and forgotten here, shown elsewhere.

/** @import { Summary } from '../types.js' */

import { fold, matcher } from './filter.js';

/** How many are kept; the oldest leave. */
export const MOST = 2_000;

/**
 * @typedef {object} Arrival
 * @property {string} key
 * @property {Summary | null} message Null for a gap, which only says that nobody listened here.
 * @property {boolean} deleted
 * @property {number} told When it was told, in milliseconds of `performance.now()`; -Infinity for what was there before.
 * @property {string} text What the filter looks at, folded.
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
  #gaps = 0;

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
    if (this.#mayMiss && !known) this.#queue({ key: `gap ${++this.#gaps}`, message: null, deleted: false, told, text: '' });
    this.#mayMiss = false;
    if (known) return false;
    const text = fold([message.mailbox, message.from, ...message.to, message.subject].join('\n'));
    const arrival = { key, message, deleted: false, told, text };
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

  /** Takes in what waits, and returns it. */
  take() {
    const taken = this.#waiting;
    if (taken.length > 0) this.#kept = [...taken.toReversed(), ...this.#kept].slice(0, MOST);
    this.#waiting = [];
    this.waiting = 0;
    return taken;
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
   * Those that fit, newest first.
   * @param {ReturnType<typeof matcher>} fits
   * @returns {readonly Arrival[]}
   */
  matching(fits) {
    return fits ? this.#kept.filter(({ text }) => fits(text)) : this.#kept;
  }

  /** @param {Arrival} arrival */
  #queue(arrival) {
    this.#waiting.push(arrival);
    // Not at every one: that would move the whole array each time.
    if (this.#waiting.length > 2 * MOST) this.#waiting = this.#waiting.slice(-MOST);
  }
}
