// Which rows of a list are selected, by key. Nothing that cannot be seen stays selected: it would be deleted unseen.

export class Selection {
  /** @type {Set<string>} */
  #keys = new Set();
  /** Where a range begins. @type {string | null} */
  #anchor = null;

  get size() {
    return this.#keys.size;
  }

  /** @param {string} key */
  has(key) {
    return this.#keys.has(key);
  }

  /**
   * @param {string} key
   * @param {boolean} [isSelected]
   */
  toggle(key, isSelected = !this.has(key)) {
    if (isSelected) this.#keys.add(key);
    else this.#keys.delete(key);
    this.#anchor = key;
  }

  /**
   * Selects everything from where the last one was chosen to here.
   * @param {string} key
   * @param {string[]} all In their order.
   * @param {string | null} otherwise Where to begin when none was chosen.
   */
  extend(key, all, otherwise) {
    const from = all.indexOf(this.#anchor ?? otherwise ?? key);
    const to = all.indexOf(key);
    const [first, last] = from < 0 ? [to, to] : [Math.min(from, to), Math.max(from, to)];
    for (const each of all.slice(first, last + 1)) this.#keys.add(each);
    this.#anchor ??= all[from] ?? key;
  }

  /** @param {string[]} all */
  set(all) {
    this.#keys = new Set(all);
    this.#anchor = null;
  }

  /** @param {(key: string) => boolean} isThere */
  prune(isThere) {
    if (this.#keys.size === 0) return;
    this.#keys = new Set([...this.#keys].filter(isThere));
    if (this.#keys.size === 0) this.#anchor = null;
  }

  /**
   * Those selected, in the order of the list.
   * @param {string[]} all
   */
  among(all) {
    return all.filter((key) => this.#keys.has(key));
  }
}
