// <time-ago>: a relative time that is updated while it is shown. The exact time is its tooltip.

import { ago, exact } from '../lib/format.js';

/** The interval of updates. */
const UPDATE_MS = 20_000;

/** @type {Set<TimeAgo>} */
const shown = new Set();
setInterval(() => shown.forEach((one) => one.refresh()), UPDATE_MS);

export class TimeAgo extends HTMLElement {
  #millis = 0;

  /** @param {number} millis */
  static create(millis) {
    const element = /** @type {TimeAgo} */ (document.createElement('time-ago'));
    element.millis = millis;
    return element;
  }

  /** @param {number} millis */
  set millis(millis) {
    this.#millis = millis;
    this.title = exact(millis);
    this.refresh();
  }

  connectedCallback() {
    shown.add(this);
    this.refresh();
  }

  disconnectedCallback() {
    shown.delete(this);
  }

  refresh() {
    const text = ago(this.#millis);
    if (this.textContent !== text) this.textContent = text;
  }
}

customElements.define('time-ago', TimeAgo);
