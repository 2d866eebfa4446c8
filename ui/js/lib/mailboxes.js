// The mailboxes that contain messages, with their counts. They are loaded again after events and changes. Every change dispatches
// `change`.

/** @import { Mailbox } from '../types.js' */

import * as api from './api.js';
import * as live from './live.js';

const LIMIT = 1000;
/** The delay of a reload after an event, and the minimum time between two reloads. */
const RELOAD_DELAY_MS = 150;
const MIN_RELOAD_MS = 1_500;

export class Mailboxes extends EventTarget {
  /** By name. @type {Map<string, Mailbox>} */
  all = new Map();
  isLoaded = false;
  /** True if these are all mailboxes; false if they are the first ones with the prefix. */
  isComplete = true;
  /** The error of the last request, or null. @type {unknown} */
  error = null;
  /** The start of the names, if not all mailboxes can be loaded. */
  prefix = '';

  /** @type {AbortController | null} */
  #request = null;
  /** @type {number | undefined} */
  #timer;
  #loadedAt = -MIN_RELOAD_MS;
  #isLoading = false;
  /** True if something has changed during the request. */
  #mustReload = false;

  /**
   * Loads the mailboxes and keeps them up to date.
   * @param {AbortSignal} signal
   */
  start(signal) {
    signal.addEventListener('abort', () => {
      clearTimeout(this.#timer);
      this.#timer = undefined;
      this.#request?.abort();
    });
    document.addEventListener('visibilitychange', () => this.reload(), { signal });
    live.subscribe(null, { connected: () => this.reload(), stored: () => this.reload(), deleted: () => this.reload() }, signal);
    this.load();
  }

  /** Schedules a reload. A hidden tab reloads when it is shown again. */
  reload() {
    if (document.hidden) return;
    // A slow request is not replaced, so that the mailboxes are shown while mail arrives.
    this.#mustReload = this.#isLoading;
    if (this.#isLoading) return;
    const due = this.#loadedAt + MIN_RELOAD_MS - performance.now();
    this.#timer ??= window.setTimeout(() => this.load(), Math.max(RELOAD_DELAY_MS, due));
  }

  async load() {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#request?.abort();
    const { signal } = this.#request = new AbortController();
    this.#isLoading = true;
    this.#loadedAt = performance.now();
    const prefix = this.isComplete ? '' : this.prefix;
    try {
      const { mailboxes, next } = await api.mailboxes({ limit: LIMIT, prefix, signal });
      [this.isLoaded, this.error] = [true, null];
      this.isComplete = next === null && prefix === '';
      this.all = new Map(mailboxes.map((mailbox) => [mailbox.name, mailbox]));
    } catch (error) {
      if (api.wasAborted(error)) return;
      this.error = error;
    }
    this.#isLoading = false;
    this.dispatchEvent(new Event('change'));
    if (this.#mustReload) this.reload();
  }
}
