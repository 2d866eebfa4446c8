// The row elements of a <virtual-list>: created once, and reused for other items.

import { h, set } from '../lib/dom.js';

/**
 * The item of a row and its index.
 * @template T
 * @typedef {{ key: string, item: T, index: number }} Wanted
 */

/**
 * How rows are created and drawn; see the list.
 * @template T
 * @typedef {object} Kind
 * @property {((item: T) => string) | null} link
 * @property {(row: HTMLElement, item: T) => void} draw
 */

let lists = 0;

/** What each row shows of its position. @type {WeakMap<HTMLElement, string>} */
const positions = new WeakMap();

/** @template T */
export class VirtualRows {
  /** @type {Map<string, { row: HTMLElement, item: T }>} */
  #rows = new Map();
  /** @type {HTMLElement[]} */
  #spare = [];
  #name = `list-${++lists}`;
  #made = 0;
  #space;
  #kind;

  /**
   * @param {HTMLElement} space The parent element of the rows.
   * @param {Kind<T>} kind
   */
  constructor(space, kind) {
    this.#space = space;
    this.#kind = kind;
  }

  /** @param {string} key */
  at(key) {
    return this.#rows.get(key)?.row;
  }

  /** Returns the height of a row that CSS sets, in whole pixels: scroll positions are rounded. */
  height() {
    const probe = h('div', { class: 'virtual-row' });
    this.#space.append(probe);
    const { height } = probe.getBoundingClientRect();
    probe.remove();
    return Math.floor(height);
  }

  /** Redraws all rows. */
  refresh() {
    for (const { row, item } of this.#rows.values()) this.#kind.draw(row, item);
  }

  /**
   * Shows these rows in this order. A row that already shows its item is not redrawn.
   * @param {Wanted<T>[]} wanted
   * @param {{ height: number, all: number, cursor: number }} list
   */
  show(wanted, list) {
    const keys = new Set(wanted.map(({ key }) => key));
    for (const key of this.#rows.keys()) if (!keys.has(key)) this.#release(key);
    let next = this.#space.firstElementChild;
    for (const each of wanted) {
      const row = this.#rowFor(each);
      position(row, each.index, list);
      if (row === next) next = next.nextElementSibling;
      else this.#space.insertBefore(row, next);
    }
  }

  clear() {
    for (const key of this.#rows.keys()) this.#release(key);
  }

  /** @param {Wanted<T>} wanted */
  #rowFor({ key, item }) {
    const known = this.#rows.get(key);
    if (known?.item === item) return known.row;
    const row = known?.row ?? this.#spare.pop() ?? this.#make();
    row.dataset.key = key;
    this.#rows.set(key, { row, item });
    if (this.#kind.link) row.setAttribute('href', this.#kind.link(item));
    this.#kind.draw(row, item);
    return row;
  }

  #make() {
    const { link } = this.#kind;
    const row = h(link ? 'a' : 'div', { class: 'virtual-row', role: 'option', id: `${this.#name}-${++this.#made}` });
    if (link) set(row, { tabindex: -1, draggable: 'false' });
    return row;
  }

  /** @param {string} key */
  #release(key) {
    const known = this.#rows.get(key);
    this.#rows.delete(key);
    if (!known) return;
    known.row.remove();
    this.#spare.push(known.row);
  }
}

/**
 * @param {HTMLElement} row
 * @param {number} index
 * @param {{ height: number, all: number, cursor: number }} list
 */
function position(row, index, { height, all, cursor }) {
  // Most rows stay as they are while the list scrolls, and writing an attribute costs time.
  const now = `${index} ${height} ${all} ${index === cursor}`;
  if (positions.get(row) === now) return;
  positions.set(row, now);
  row.style.top = `${index * height}px`;
  row.ariaPosInSet = String(index + 1);
  row.ariaSetSize = String(all);
  row.ariaCurrent = index === cursor ? 'true' : null;
}
