// Loads the number of attachments for the visible messages of a list, in batches.

/** @import { Entry } from './entries.js' */

import * as api from './api.js';

/** The delay before a request in milliseconds, and the maximum number of messages in one. */
const DELAY_MS = 120;
const MAX_IDS = 200;

export class AttachmentCounts {
  #getVisible;
  #onLoaded;
  /** @type {number | undefined} */
  #timer;
  #isAvailable = true;

  /**
   * @param {() => { mailbox: string, entries: Entry[] } | null} getVisible Returns the visible messages.
   * @param {() => void} onLoaded Called after new counts are loaded.
   */
  constructor(getVisible, onLoaded) {
    this.#getVisible = getVisible;
    this.#onLoaded = onLoaded;
  }

  /** Schedules a request for the visible messages. */
  schedule() {
    if (this.#isAvailable) this.#timer ??= window.setTimeout(() => this.#load(), DELAY_MS);
  }

  stop() {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /** Errors are ignored: the count is only a hint. */
  async #load() {
    this.#timer = undefined;
    const visible = this.#getVisible();
    const missing = visible?.entries.filter(({ attachments }) => attachments === undefined).slice(0, MAX_IDS) ?? [];
    if (!visible || missing.length === 0) return;
    try {
      const counts = await api.attachmentCounts(visible.mailbox, missing.map(({ id }) => id));
      for (const entry of missing) entry.attachments = counts[entry.id] ?? 0;
      this.#onLoaded();
    } catch (error) {
      this.#isAvailable = !(error instanceof api.ApiError && error.status === 404);
    }
  }
}
