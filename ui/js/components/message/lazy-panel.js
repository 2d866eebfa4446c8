// A panel that loads its content when it is first shown.

import * as api from '../../lib/api.js';
import { fill, h } from '../../lib/dom.js';
import { icon } from '../../lib/icons.js';

/** The delay before "Loading…" is shown, in milliseconds. */
const LOADING_DELAY_MS = 200;

/** @template T */
export class LazyPanel extends HTMLElement {
  #fetch;
  #draw;
  #request = new AbortController();

  /**
   * @param {(signal: AbortSignal) => Promise<T>} fetch
   * @param {(content: T) => Element[]} draw
   */
  constructor(fetch, draw) {
    super();
    this.#fetch = fetch;
    this.#draw = draw;
  }

  connectedCallback() {
    if (!this.firstChild) this.#load();
  }

  disconnectedCallback() {
    this.#request.abort();
  }

  async #load() {
    const { signal } = this.#request = new AbortController();
    fill(this);
    const slow = setTimeout(() => signal.aborted || fill(this, h('p', { class: 'list-none soft', role: 'status' }, 'Loading…')), LOADING_DELAY_MS);
    try {
      const content = await this.#fetch(signal);
      if (!signal.aborted) fill(this, ...this.#draw(content));
    } catch (error) {
      if (!signal.aborted) fill(this, this.#failed(error));
    } finally {
      clearTimeout(slow);
    }
  }

  /**
   * Returns the error text, with a retry button unless the content does not exist.
   * @param {unknown} error
   */
  #failed(error) {
    const isMissing = error instanceof api.ApiError && error.status === 404;
    const retry = h('button', { class: 'button', type: 'button', onclick: () => this.#load() }, 'Try again');
    return h('div', { class: 'empty' }, icon(isMissing ? 'file' : 'warning'), h('p', { role: 'alert' }, api.sentence(error)), !isMissing && retry);
  }
}
