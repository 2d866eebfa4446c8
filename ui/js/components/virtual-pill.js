// The button above a <virtual-list>: the number of items that were added at the top; a click scrolls there.

import { h } from '../lib/dom.js';
import { count } from '../lib/format.js';

export class VirtualPill {
  element = h('button', { class: 'virtual-pill', type: 'button', hidden: true });
  #new = 0;

  /** @param {number} more */
  add(more) {
    this.#new += more;
    this.#draw();
  }

  /** Resets the count when the top is visible. Returns whether the button had the focus. */
  clear() {
    if (this.#new === 0) return false;
    const hadFocus = document.activeElement === this.element;
    this.#new = 0;
    this.#draw();
    return hadFocus;
  }

  #draw() {
    this.element.hidden = this.#new === 0;
    this.element.textContent = `${count(this.#new)} new`;
  }
}
