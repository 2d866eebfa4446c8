// The pill above a <virtual-list>: how many came on top while the reader is further down, and the way there.

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

  /** They are in sight now. Returns whether the focus went with the pill. */
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
