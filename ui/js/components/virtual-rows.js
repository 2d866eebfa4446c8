// The rows of a <virtual-list> that are in the page: made once, used again for other items, in the order of the list.

import { h, set } from '../lib/dom.js';

/**
 * What a row is to show, and where.
 * @template T
 * @typedef {{ key: string, item: T, place: number }} Wanted
 */

/**
 * What rows are made of, see the list.
 * @template T
 * @typedef {object} Kind
 * @property {((item: T) => string) | null} link
 * @property {string | null} inner
 * @property {(row: HTMLElement, item: T) => void} draw
 */

let lists = 0;

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
   * @param {HTMLElement} space Where the rows are put.
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

  /** How high a row is, as CSS says. */
  height() {
    const probe = h('div', { class: 'virtual-row' });
    this.#space.append(probe);
    const { height } = probe.getBoundingClientRect();
    probe.remove();
    return height;
  }

  /** Draws all of them once more. */
  refresh() {
    for (const { row, item } of this.#rows.values()) this.#kind.draw(row, item);
  }

  /**
   * Makes these, in this order, the rows in the page; what a row shows already is not drawn again.
   * @param {Wanted<T>[]} wanted
   * @param {{ height: number, all: number, cursor: number }} list
   */
  show(wanted, list) {
    const keys = new Set(wanted.map(({ key }) => key));
    for (const key of this.#rows.keys()) if (!keys.has(key)) this.#release(key);
    let next = this.#space.firstElementChild;
    for (const each of wanted) {
      const row = this.#take(each);
      position(row, each.place, list);
      if (row === next) next = next.nextElementSibling;
      else this.#space.insertBefore(row, next);
    }
  }

  clear() {
    for (const key of this.#rows.keys()) this.#release(key);
  }

  /** @param {Wanted<T>} wanted */
  #take({ key, item }) {
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
    const { link, inner } = this.#kind;
    const row = h(link ? 'a' : 'div', { class: 'virtual-row', role: inner === null ? 'option' : 'listitem', id: `${this.#name}-${++this.#made}` });
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
 * @param {number} place
 * @param {{ height: number, all: number, cursor: number }} list
 */
function position(row, place, { height, all, cursor }) {
  const top = `${place * height}px`;
  if (row.style.top !== top) row.style.top = top;
  row.ariaPosInSet = String(place + 1);
  row.ariaSetSize = String(all);
  row.ariaCurrent = place === cursor ? 'true' : null;
}
