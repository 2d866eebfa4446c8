// The results of a search, loaded page by page. While the index is incomplete, the first page is reloaded periodically. Every
// change dispatches the event `change`.

/** @import { Hit } from '../types.js' */

import * as api from './api.js';

/** The delay before an incomplete index is queried again, in milliseconds. */
const RELOAD_MS = 2_000;

export class SearchResults extends EventTarget {
  /** @type {Hit[]} Newest first. */
  hits = [];
  /** The cursor of the next page, or null. @type {string | null} */
  next = null;
  /** False while the index does not contain all messages. */
  isComplete = true;
  /** The error of the last request, or null. @type {unknown} */
  error = null;
  isLoaded = false;
  isLoading = false;

  #request = new AbortController();
  /** @type {number | undefined} */
  #timer;

  /**
   * @param {string} query
   * @param {string | null} mailbox The mailbox to search; null for all.
   */
  constructor(query, mailbox) {
    super();
    this.query = query;
    this.mailbox = mailbox;
  }

  /** Loads the first page and replaces all results. */
  load() {
    return this.#load(undefined, (messages) => messages);
  }

  /** Loads the next page. */
  loadMore() {
    const { hits, next, isLoading } = this;
    return next === null || isLoading ? undefined : this.#load(next, (messages) => [...hits, ...messages]);
  }

  /** Cancels the request and the periodic reload. */
  stop() {
    clearTimeout(this.#timer);
    this.#request.abort();
    this.isLoading = false;
  }

  /**
   * @param {string | undefined} before
   * @param {(messages: Hit[]) => Hit[]} combine
   */
  async #load(before, combine) {
    this.stop();
    const { signal } = this.#request = new AbortController();
    this.isLoading = true;
    this.#changed();
    try {
      const { messages, next, complete } = await api.search(this.query, { mailbox: this.mailbox, before, signal });
      [this.hits, this.next, this.isComplete, this.error] = [combine(messages), next, complete, null];
      // If the next page was loaded, the previous pages stay as they are.
      if (!complete && before === undefined) this.#timer = window.setTimeout(() => this.load(), RELOAD_MS);
    } catch (error) {
      if (api.wasAborted(error)) return;
      this.error = error;
    }
    this.isLoaded = true;
    this.isLoading = false;
    this.#changed();
  }

  #changed() {
    this.dispatchEvent(new Event('change'));
  }
}
