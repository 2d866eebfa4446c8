// Data of the server that is loaded again after events and changes. Every change dispatches `change`.

/** @import { Summary } from '../types.js' */

import * as api from './api.js';
import * as live from './live.js';

/** The delay of a reload after an event, and the minimum time between two reloads. */
const RELOAD_DELAY_MS = 150;
const MIN_RELOAD_MS = 1_500;

export class LiveData extends EventTarget {
  isLoaded = false;
  /** The error of the last request, or null. @type {unknown} */
  error = null;

  /** @type {AbortController | null} */
  #request = null;
  /** @type {number | undefined} */
  #timer;
  #loadedAt = -MIN_RELOAD_MS;
  #isStarted = false;
  #isLoading = false;
  /** True if something has changed during the request. */
  #mustReload = false;
  /** The messages that arrived during the request. @type {Summary[]} */
  #arrived = [];

  /**
   * Requests the data and stores it.
   * @param {AbortSignal} _signal
   * @returns {Promise<void>}
   */
  async request(_signal) {}

  /**
   * Returns whether the data is without this message. The server sends the last messages again on every connection.
   * @param {Summary} _message
   */
  isMissing(_message) {
    return true;
  }

  /**
   * Loads the data and keeps it up to date.
   * @param {AbortSignal} signal
   */
  start(signal) {
    this.#isStarted = true;
    signal.addEventListener('abort', () => {
      this.#isStarted = false;
      clearTimeout(this.#timer);
      this.#timer = undefined;
      this.#request?.abort();
    });
    document.addEventListener('visibilitychange', () => this.reload(), { signal });
    live.subscribe(null, { connected: () => this.reload(), stored: (message) => this.#stored(message), deleted: () => this.reload() }, signal);
    this.load();
  }

  /** @param {Summary} message */
  #stored(message) {
    if (this.#isLoading) this.#arrived.push(message);
    else if (this.isMissing(message)) this.reload();
  }

  /** Schedules a reload. A hidden tab reloads when it is shown again. */
  reload() {
    if (document.hidden || !this.#isStarted) return;
    // A slow request is not replaced, so that the data is shown while mail arrives.
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
    this.#mustReload = false;
    try {
      await this.request(signal);
      [this.isLoaded, this.error] = [true, null];
    } catch (error) {
      if (api.wasAborted(error)) return;
      this.error = error;
    }
    this.#isLoading = false;
    this.dispatchEvent(new Event('change'));
    if (this.#mustReload) this.reload();
    for (const message of this.#arrived.splice(0)) this.#stored(message);
  }
}
