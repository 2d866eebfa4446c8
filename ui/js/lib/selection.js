// The selected rows of a list, by key. Rows that are not visible are never selected, so that they cannot be deleted by mistake.

export class Selection {
  /** @type {Set<string>} */
  #keys = new Set();
  /** The start of a range. @type {string | null} */
  #anchor = null;
  /** The current end of the range. @type {string | null} */
  #end = null;

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
    this.#end = null;
  }

  /**
   * Selects the range from the last chosen row to this one, in place of the previous range.
   * @param {string} key
   * @param {string[]} all The keys in list order.
   * @param {string | null} fallback The start of the range if no row was chosen.
   */
  extend(key, all, fallback) {
    const exists = (/** @type {string | null} */ other) => other !== null && all.includes(other);
    if (!exists(this.#anchor)) [this.#anchor, this.#end] = [exists(fallback) ? fallback : key, null];
    for (const each of this.#range(all, this.#end)) this.#keys.delete(each);
    for (const each of this.#range(all, key)) this.#keys.add(each);
    this.#end = key;
  }

  /** @param {string[]} all */
  set(all) {
    this.#keys = new Set(all);
    this.#anchor = this.#end = null;
  }

  /** @param {(key: string) => boolean} exists */
  prune(exists) {
    if (this.#anchor !== null && !exists(this.#anchor)) this.#anchor = this.#end = null;
    for (const key of this.#keys) if (!exists(key)) this.#keys.delete(key);
    if (this.#keys.size === 0) this.#anchor = this.#end = null;
  }

  /**
   * Returns the selected keys in list order.
   * @param {string[]} all
   */
  among(all) {
    return all.filter((key) => this.#keys.has(key));
  }

  /**
   * @param {string[]} all
   * @param {string | null} end
   */
  #range(all, end) {
    const [from, to] = [all.indexOf(this.#anchor ?? ''), all.indexOf(end ?? '')];
    return from < 0 || to < 0 ? [] : all.slice(Math.min(from, to), Math.max(from, to) + 1);
  }
}
