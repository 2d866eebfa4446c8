// <time-ago>: a time that is updated while it is shown: relative, or in another format. The exact time is its tooltip.

import { ago, exact } from '../lib/format.js';

/** The interval of updates. */
const UPDATE_MS = 20_000;

/** @type {Set<TimeAgo>} */
const shown = new Set();
const refreshAll = () => shown.forEach((one) => one.refresh());
setInterval(refreshAll, UPDATE_MS);
// The clock or the time zone can be another one.
window.addEventListener('restante:setting', refreshAll);

export class TimeAgo extends HTMLElement {
  #millis = 0;
  #drawnAt = 0;
  #format = (/** @type {number} */ millis) => ago(millis);

  /**
   * @param {number} millis
   * @param {(millis: number) => string} [format] A function of `format.js`; `ago` by default.
   */
  static create(millis, format) {
    const element = /** @type {TimeAgo} */ (document.createElement('time-ago'));
    if (format) element.#format = format;
    element.millis = millis;
    return element;
  }

  /** @param {number} millis */
  set millis(millis) {
    this.#millis = millis;
    this.refresh();
  }

  connectedCallback() {
    shown.add(this);
    if (Date.now() - this.#drawnAt > UPDATE_MS) this.refresh();
  }

  disconnectedCallback() {
    shown.delete(this);
  }

  refresh() {
    this.#drawnAt = Date.now();
    const [text, title] = [this.#format(this.#millis), exact(this.#millis)];
    // An assignment to `this` would declare a property of this class for TypeScript 7.
    const element = /** @type {HTMLElement} */ (this);
    if (element.textContent !== text) element.textContent = text;
    if (element.title !== title) element.title = title;
  }
}

customElements.define('time-ago', TimeAgo);
