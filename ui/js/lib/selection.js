// Which rows of a list are selected, by key. Nothing that cannot be seen stays selected: it would be deleted unseen.

export class Selection {
  /** @type {Set<string>} */
  #keys = new Set();
  /** Where a range begins. @type {string | null} */
  #anchor = null;
  /** How far the range goes now. @type {string | null} */
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
   * Selects everything from where the last one was chosen to here, instead of to where the range went before.
   * @param {string} key
   * @param {string[]} all In their order.
   * @param {string | null} otherwise Where to begin when none was chosen.
   */
  extend(key, all, otherwise) {
    const isThere = (/** @type {string | null} */ other) => other !== null && all.includes(other);
    if (!isThere(this.#anchor)) [this.#anchor, this.#end] = [isThere(otherwise) ? otherwise : key, null];
    for (const each of this.#range(all, this.#end)) this.#keys.delete(each);
    for (const each of this.#range(all, key)) this.#keys.add(each);
    this.#end = key;
  }

  /** @param {string[]} all */
  set(all) {
    this.#keys = new Set(all);
    this.#anchor = this.#end = null;
  }

  /** @param {(key: string) => boolean} isThere */
  prune(isThere) {
    if (this.#anchor !== null && !isThere(this.#anchor)) this.#anchor = this.#end = null;
    for (const key of this.#keys) if (!isThere(key)) this.#keys.delete(key);
    if (this.#keys.size === 0) this.#anchor = this.#end = null;
  }

  /**
   * Those selected, in the order of the list.
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
