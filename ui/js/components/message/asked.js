// A panel whose content is asked for when somebody looks at it. Whoever makes one says what is asked and how it is shown.

import * as api from '../../lib/api.js';
import { fill, h } from '../../lib/dom.js';
import { icon } from '../../lib/icons.js';

/** Before this, waiting is not worth a word. */
const PATIENCE = 200;

/** @template T */
export class AskedPanel extends HTMLElement {
  #ask;
  #draw;
  #asking = new AbortController();

  /**
   * @param {(signal: AbortSignal) => Promise<T>} ask
   * @param {(answer: T) => Element[]} draw
   */
  constructor(ask, draw) {
    super();
    this.#ask = ask;
    this.#draw = draw;
  }

  connectedCallback() {
    if (!this.firstChild) this.#load();
  }

  disconnectedCallback() {
    this.#asking.abort();
  }

  async #load() {
    const { signal } = this.#asking = new AbortController();
    fill(this);
    const slow = setTimeout(() => signal.aborted || fill(this, h('p', { class: 'list-none soft', role: 'status' }, 'Loading…')), PATIENCE);
    try {
      const answer = await this.#ask(signal);
      if (!signal.aborted) fill(this, ...this.#draw(answer));
    } catch (error) {
      if (!signal.aborted) fill(this, this.#failed(error));
    } finally {
      clearTimeout(slow);
    }
  }

  /**
   * What is not there need not be asked for again.
   * @param {unknown} error
   */
  #failed(error) {
    const isMissing = error instanceof api.ApiError && error.status === 404;
    const again = h('button', { class: 'button', type: 'button', onclick: () => this.#load() }, 'Try again');
    return h('div', { class: 'empty' }, icon(isMissing ? 'file' : 'warning'), h('p', { role: 'alert' }, api.sentence(error)), !isMissing && again);
  }
}
