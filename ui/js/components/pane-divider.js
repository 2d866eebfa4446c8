// <pane-divider>: the movable line between the list and the message: by pointer, by arrow keys, and reset by a double click. The
// width is a CSS variable of the parent element and is saved in the browser.

import * as prefs from '../lib/prefs.js';
import { set } from '../lib/dom.js';

/** In rem, so that the width scales with the font size. */
const [MIN_REM, DEFAULT_REM, MAX_REM] = [18, 26, 48];
const STEP_REM = 1;

export class PaneDivider extends HTMLElement {
  #width = DEFAULT_REM;

  connectedCallback() {
    set(this, { role: 'separator', tabindex: 0, 'aria-orientation': 'vertical', 'aria-label': 'Width of the list', 'aria-valuemin': MIN_REM, 'aria-valuemax': MAX_REM });
    this.addEventListener('pointerdown', (event) => this.#grab(event));
    this.addEventListener('keydown', (event) => this.#pressed(event));
    this.addEventListener('dblclick', () => this.#choose(DEFAULT_REM));
    this.#set(prefs.read('list-width', DEFAULT_REM));
  }

  /** @param {number} width */
  #set(width) {
    this.#width = Math.min(MAX_REM, Math.max(MIN_REM, width));
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
    const targets = { ArrowLeft: this.#width - STEP_REM, ArrowRight: this.#width + STEP_REM, Home: MIN_REM, End: MAX_REM, Enter: DEFAULT_REM };
    const target = Object.entries(targets).find(([key]) => key === event.key)?.[1];
    if (target === undefined) return;
    event.preventDefault();
    this.#choose(target);
  }
}

customElements.define('pane-divider', PaneDivider);
