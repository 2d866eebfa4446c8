// The rows of a <virtual-list> that are in the page: made once, used again for other items, in the order of the list.

/**
 * What a row is to show, and where.
 * @template T
 * @typedef {{ key: string, item: T, place: number }} Wanted
 */

/** @template T */
export class VirtualRows {
  /** @type {Map<string, HTMLElement>} */
  #rows = new Map();
  /** @type {HTMLElement[]} */
  #spare = [];
  #space;
  #make;

  /**
   * @param {HTMLElement} space Where the rows are put.
   * @param {{ make(): HTMLElement, draw(row: HTMLElement, wanted: Wanted<T>): void }} make
   */
  constructor(space, make) {
    this.#space = space;
    this.#make = make;
  }

  /** @param {string} key */
  at(key) {
    return this.#rows.get(key);
  }

  /** The rows and their keys. */
  all() {
    return this.#rows.entries();
  }

  /**
   * Makes these, in this order, the rows in the page; what a row shows already is not drawn again.
   * @param {Wanted<T>[]} wanted
   * @param {(row: HTMLElement, wanted: Wanted<T>) => void} put Gives a row its place.
   */
  show(wanted, put) {
    const keys = new Set(wanted.map(({ key }) => key));
    for (const [key, row] of this.#rows) if (!keys.has(key)) this.#release(key, row);
    let next = this.#space.firstElementChild;
    for (const each of wanted) {
      const row = this.#rows.get(each.key) ?? this.#take(each);
      put(row, each);
      if (row === next) next = next.nextElementSibling;
      else this.#space.insertBefore(row, next);
    }
  }

  clear() {
    for (const [key, row] of this.#rows) this.#release(key, row);
  }

  /** @param {Wanted<T>} wanted */
  #take(wanted) {
    const row = this.#spare.pop() ?? this.#make.make();
    row.dataset.key = wanted.key;
    this.#make.draw(row, wanted);
    this.#rows.set(wanted.key, row);
    return row;
  }

  /**
   * @param {string} key
   * @param {HTMLElement} row
   */
  #release(key, row) {
    this.#rows.delete(key);
    row.remove();
    this.#spare.push(row);
  }
}
