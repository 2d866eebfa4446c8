// How far a <virtual-list> is scrolled: which rows that puts in sight, and how it stays, comes back or goes to a row.

import { h } from '../lib/dom.js';

/** How many rows are drawn above and below those in sight, so that scrolling does not show gaps. */
const BEYOND = 8;

/** What stands on top, and by how much of it is scrolled over. @typedef {{ key: string, over: number }} Sight */

/**
 * @template T
 * @typedef {object} Scrolled
 * @property {readonly T[]} items
 * @property {(item: T) => string} key
 * @property {(key: string) => number} place
 * @property {string | null} cursor
 */

/** @template T */
export class VirtualScroll {
  space = h('div', { class: 'virtual-space', role: 'presentation' });
  port = h('div', { class: 'virtual-port', role: 'listbox', tabindex: 0 }, this.space);
  /** Of a row; 0 until it is known. */
  height = 0;

  #list;
  /** What is to be scrolled to when it is there, unless the reader scrolls first. @type {{ sight: Sight | null, cursor: boolean }} */
  #awaited = { sight: null, cursor: false };

  /** @param {Scrolled<T>} list */
  constructor(list) {
    this.#list = list;
    for (const hand of ['wheel', 'touchmove', 'pointerdown', 'keydown']) this.port.addEventListener(hand, () => this.stay(), { passive: true });
  }

  get isAtTop() {
    return this.port.scrollTop <= 0;
  }

  /** By how many rows a key goes that goes by pages. */
  get page() {
    return Math.max(1, Math.floor(this.port.clientHeight / this.height) - 1);
  }

  /** The first place that is wholly in sight. */
  get first() {
    return Math.ceil(this.port.scrollTop / (this.height || 1));
  }

  /** The places to draw: from the first to before the second. */
  get range() {
    const { scrollTop, clientHeight } = this.port;
    return [Math.max(0, Math.floor(scrollTop / this.height) - BEYOND), Math.min(this.#list.items.length, Math.ceil((scrollTop + clientHeight) / this.height) + BEYOND)];
  }

  /** @returns {Sight | null} */
  get sight() {
    const { scrollTop } = this.port;
    const item = scrollTop > 0 && this.height > 0 ? this.#list.items[Math.floor(scrollTop / this.height)] : undefined;
    return item === undefined ? null : { key: this.#list.key(item), over: scrollTop % this.height };
  }

  set sight(sight) {
    this.#awaited.sight = sight;
    this.settle();
  }

  /**
   * Rows are so high now; what was on top stays there.
   * @param {number} height
   */
  resize(height) {
    const first = this.height > 0 ? this.port.scrollTop / this.height : 0;
    this.height = height;
    this.stretch();
    this.port.scrollTop = first * height;
  }

  /** Makes room for all items. */
  stretch() {
    this.space.style.height = `${this.#list.items.length * this.height}px`;
  }

  /**
   * Scrolls so that the first row in sight that is still there stays where it was.
   * @param {readonly T[]} before
   * @param {number} top
   */
  hold(before, top) {
    const { key, place } = this.#list;
    const held = before.findIndex((item, was) => was >= Math.floor(top / this.height) && place(key(item)) >= 0);
    const wanted = held < 0 ? top : top + (place(key(before[held])) - held) * this.height;
    if (wanted !== this.port.scrollTop) this.port.scrollTop = wanted;
  }

  /** Scrolls as little as it takes to show the row at the cursor, when it is there. */
  reveal() {
    const { cursor } = this.#list;
    const place = cursor === null || this.height === 0 ? -1 : this.#list.place(cursor);
    this.#awaited.cursor = cursor !== null && place < 0;
    if (place < 0) return;
    const [top, bottom] = [place * this.height, (place + 1) * this.height];
    if (top < this.port.scrollTop) this.port.scrollTop = top;
    else if (bottom > this.port.scrollTop + this.port.clientHeight) this.port.scrollTop = bottom - this.port.clientHeight;
  }

  /** Goes to what was waited for, if it has come. */
  settle() {
    const { sight, cursor } = this.#awaited;
    const place = sight && this.height > 0 ? this.#list.place(sight.key) : -1;
    if (sight && place >= 0) {
      this.stay();
      this.port.scrollTop = place * this.height + sight.over;
    } else if (cursor) {
      this.reveal();
    }
  }

  /** The reader takes the list in hand: it goes nowhere by itself any more. */
  stay() {
    this.#awaited = { sight: null, cursor: false };
  }
}
