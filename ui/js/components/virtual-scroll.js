// The scroll position of a <virtual-list>: the visible range, keeping and restoring the position, and scrolling to a row.

import { h } from '../lib/dom.js';

/** The number of rows that are drawn above and below the visible ones, so that scrolling shows no gaps. */
const EXTRA_ROWS = 8;

/** The key of the first visible row, and how many pixels of it are scrolled over. @typedef {{ key: string, over: number }} Position */

/**
 * @template T
 * @typedef {object} Scrolled
 * @property {readonly T[]} items
 * @property {(item: T) => string} key
 * @property {(key: string) => number} indexOf
 * @property {string | null} cursor
 */

/** @template T */
export class VirtualScroll {
  space = h('div', { class: 'virtual-space', role: 'presentation' });
  port = h('div', { class: 'virtual-port', role: 'listbox', tabindex: 0 }, this.space);
  /** The height of a row; 0 until it is measured. */
  height = 0;

  #list;
  /** The scroll target whose row does not exist yet; dropped if the user scrolls. @type {{ position: Position | null, cursor: boolean }} */
  #pending = { position: null, cursor: false };

  /** @param {Scrolled<T>} list */
  constructor(list) {
    this.#list = list;
    for (const name of ['wheel', 'touchmove', 'pointerdown', 'keydown']) this.port.addEventListener(name, () => this.cancelPending(), { passive: true });
  }

  get isAtTop() {
    return this.port.scrollTop <= 0;
  }

  /** The number of rows that Page Up and Page Down move. */
  get page() {
    return Math.max(1, Math.floor(this.port.clientHeight / this.height) - 1);
  }

  /** The first index that is fully visible. */
  get first() {
    return Math.ceil(this.port.scrollTop / (this.height || 1));
  }

  /** The indexes to draw: from the first (inclusive) to the second (exclusive). */
  get range() {
    const { scrollTop, clientHeight } = this.port;
    return [Math.max(0, Math.floor(scrollTop / this.height) - EXTRA_ROWS), Math.min(this.#list.items.length, Math.ceil((scrollTop + clientHeight) / this.height) + EXTRA_ROWS)];
  }

  /** The key of the row of the pending target, or null. */
  get pendingKey() {
    const { position, cursor } = this.#pending;
    return position?.key ?? (cursor ? this.#list.cursor : null);
  }

  /** @returns {Position | null} */
  get position() {
    const { scrollTop } = this.port;
    const item = scrollTop > 0 && this.height > 0 ? this.#list.items[Math.floor(scrollTop / this.height)] : undefined;
    return item === undefined ? null : { key: this.#list.key(item), over: scrollTop % this.height };
  }

  set position(position) {
    this.#pending.position = position;
    this.applyPending();
  }

  /**
   * Sets the height of a row and keeps the first visible row.
   * @param {number} height
   */
  resize(height) {
    const first = this.height > 0 ? this.port.scrollTop / this.height : 0;
    this.height = height;
    this.updateHeight();
    this.port.scrollTop = first * height;
  }

  /** Sets the height of the content to that of all rows. */
  updateHeight() {
    this.space.style.height = `${this.#list.items.length * this.height}px`;
  }

  /**
   * Scrolls so that the first visible row that still exists stays in place.
   * @param {readonly T[]} before
   * @param {number} top
   */
  keepPosition(before, top) {
    const { key, indexOf } = this.#list;
    const kept = before.findIndex((item, index) => index >= Math.floor(top / this.height) && indexOf(key(item)) >= 0);
    const wanted = kept < 0 ? top : top + (indexOf(key(before[kept])) - kept) * this.height;
    if (wanted !== this.port.scrollTop) this.port.scrollTop = wanted;
  }

  /** Scrolls by the minimum to show the row at the cursor, now or when it exists. */
  reveal() {
    const { cursor } = this.#list;
    const index = cursor === null || this.height === 0 ? -1 : this.#list.indexOf(cursor);
    this.#pending.cursor = cursor !== null && index < 0;
    if (index < 0) return;
    const [top, bottom] = [index * this.height, (index + 1) * this.height];
    if (top < this.port.scrollTop) this.port.scrollTop = top;
    else if (bottom > this.port.scrollTop + this.port.clientHeight) this.port.scrollTop = bottom - this.port.clientHeight;
  }

  /** Scrolls to the pending target if its row exists now. */
  applyPending() {
    const { position, cursor } = this.#pending;
    const index = position && this.height > 0 ? this.#list.indexOf(position.key) : -1;
    if (position && index >= 0) {
      this.cancelPending();
      this.port.scrollTop = index * this.height + position.over;
    } else if (cursor) {
      this.reveal();
    }
  }

  /** Drops the pending target, because the user scrolls or moves. */
  cancelPending() {
    this.#pending = { position: null, cursor: false };
  }
}
