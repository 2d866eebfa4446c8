// How many attachments the messages of a list have: asked only about those that somebody sees, many at once.

/** @import { Entry } from './entries.js' */

import * as api from './api.js';

/** How often it is asked, and about how many at once. */
const OFTEN = 120;
const MOST = 200;

export class AttachmentCounts {
  #seen;
  #told;
  /** @type {number | undefined} */
  #timer;
  #canAsk = true;

  /**
   * @param {() => { mailbox: string, entries: Entry[] } | null} seen What is in sight.
   * @param {() => void} told What to do when more is known about it.
   */
  constructor(seen, told) {
    this.#seen = seen;
    this.#told = told;
  }

  /** Something else is in sight. */
  soon() {
    if (this.#canAsk) this.#timer ??= window.setTimeout(() => this.#ask(), OFTEN);
  }

  stop() {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /** A mark is not worth a complaint when that fails. */
  async #ask() {
    this.#timer = undefined;
    const seen = this.#seen();
    const asked = seen?.entries.filter(({ attachments }) => attachments === undefined).slice(0, MOST) ?? [];
    if (!seen || asked.length === 0) return;
    try {
      const counts = await api.attachmentCounts(seen.mailbox, asked.map(({ id }) => id));
      for (const entry of asked) entry.attachments = counts[entry.id] ?? 0;
      this.#told();
    } catch (error) {
      this.#canAsk = !(error instanceof api.ApiError && error.status === 404);
    }
  }
}
