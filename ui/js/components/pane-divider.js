// <pane-divider>: the line between the list and the message, which can be moved: by the pointer, by the arrow keys, and
// back by a double click. The width is a CSS variable of the element around it, and this browser remembers it.

import * as prefs from '../lib/prefs.js';
import { set } from '../lib/dom.js';

/** All in rem, so that it grows with the text. */
const [LEAST, USUAL, MOST] = [18, 26, 48];
const STEP = 1;

export class PaneDivider extends HTMLElement {
  #width = USUAL;

  connectedCallback() {
    set(this, { role: 'separator', tabindex: 0, 'aria-orientation': 'vertical', 'aria-label': 'Width of the list', 'aria-valuemin': LEAST, 'aria-valuemax': MOST });
    this.addEventListener('pointerdown', (event) => this.#grab(event));
    this.addEventListener('keydown', (event) => this.#pressed(event));
    this.addEventListener('dblclick', () => this.#choose(USUAL));
    this.#set(prefs.read('list-width', USUAL));
  }

  /** @param {number} width */
  #set(width) {
    this.#width = Math.min(MOST, Math.max(LEAST, width));
    this.parentElement?.style.setProperty('--list-width', `${this.#width}rem`);
    this.setAttribute('aria-valuenow', String(Math.round(this.#width)));
  }

  /** @param {number} width */
  #choose(width) {
    this.#set(width);
    prefs.write('list-width', this.#width);
  }

  /** @param {PointerEvent} event */
  #grab(event) {
    if (event.button !== 0) return;
    event.preventDefault();
    this.focus();
    this.setPointerCapture(event.pointerId);
    const rem = parseFloat(getComputedStyle(document.documentElement).fontSize);
    const offset = event.clientX - this.#width * rem;
    const move = (/** @type {PointerEvent} */ moved) => this.#choose((moved.clientX - offset) / rem);
    this.addEventListener('pointermove', move);
    this.addEventListener('lostpointercapture', () => this.removeEventListener('pointermove', move), { once: true });
  }

  /** @param {KeyboardEvent} event */
  #pressed(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const targets = { ArrowLeft: this.#width - STEP, ArrowRight: this.#width + STEP, Home: LEAST, End: MOST, Enter: USUAL };
    const target = Object.entries(targets).find(([key]) => key === event.key)?.[1];
    if (target === undefined) return;
    event.preventDefault();
    this.#choose(target);
  }
}

customElements.define('pane-divider', PaneDivider);
