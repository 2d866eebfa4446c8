// <time-ago>: how long something is ago, kept true while it is shown; exact when the pointer rests on it.

import { ago, exact } from '../lib/format.js';

/** How often the times on a page are looked at. */
const STEP = 20_000;

/** @type {Set<TimeAgo>} */
const shown = new Set();
setInterval(() => shown.forEach((one) => one.refresh()), STEP);

export class TimeAgo extends HTMLElement {
  #millis = 0;

  /** @param {number} millis */
  static of(millis) {
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
