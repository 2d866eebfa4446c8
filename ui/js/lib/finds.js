// What a search has found so far, a page at a time. While the index still takes mail in, the first page is asked for again by
// itself. Every change is told by the event `change`.

/** @import { Hit } from '../types.js' */

import * as api from './api.js';

/** How long until an index that was behind is asked again. */
const AGAIN = 2_000;

export class Finds extends EventTarget {
  /** @type {Hit[]} The newest first. */
  hits = [];
  /** Where to go on; null when that is all. @type {string | null} */
  next = null;
  /** Whether the index knew all mail. */
  isComplete = true;
  /** Why there is no answer. @type {unknown} */
  error = null;
  isAnswered = false;
  isAsking = false;

  #asking = new AbortController();
  /** @type {number | undefined} */
  #timer;

  /**
   * @param {string} query
   * @param {string | null} mailbox Where to look; null for everywhere.
   */
  constructor(query, mailbox) {
    super();
    this.query = query;
    this.mailbox = mailbox;
  }

  /** Asks for the first page, in place of all that was found before. */
  ask() {
    return this.#ask(undefined, (messages) => messages);
  }

  /** Asks for the next page. */
  more() {
    const { hits, next, isAsking } = this;
    return next === null || isAsking ? undefined : this.#ask(next, (messages) => [...hits, ...messages]);
  }

  /** Nobody waits for answers any more. */
  stop() {
    clearTimeout(this.#timer);
    this.#asking.abort();
    this.isAsking = false;
  }

  /**
   * @param {string | undefined} before
   * @param {(messages: Hit[]) => Hit[]} take
   */
  async #ask(before, take) {
    this.stop();
    const { signal } = this.#asking = new AbortController();
    this.isAsking = true;
    this.#changed();
    try {
      const { messages, next, complete } = await api.search(this.query, { mailbox: this.mailbox, before, signal });
      [this.hits, this.next, this.isComplete, this.error] = [take(messages), next, complete, null];
      // Who has gone on to the next page shall find the ones before as they were.
      if (!complete && before === undefined) this.#timer = window.setTimeout(() => this.ask(), AGAIN);
    } catch (error) {
      if (api.wasAborted(error)) return;
      this.error = error;
    }
    this.isAnswered = true;
    this.isAsking = false;
    this.#changed();
  }

  #changed() {
    this.dispatchEvent(new Event('change'));
  }
}
