// <relay-list>: entries of the relay, newest first. Updates keep the elements of the entries, so that the focus stays.

/** @import { RelayEntry } from '../types.js' */

import { fill, h } from '../lib/dom.js';
import { RelayEntryView } from './relay-entry.js';

export class RelayList extends HTMLElement {
  /** @type {Map<string, { row: HTMLElement, view: RelayEntryView }>} */
  #rows = new Map();
  #isListed;
  #list = h('ol', { class: 'relay-entries sheet', 'aria-label': 'Relayed messages, newest first', hidden: true });

  /** @param {{ isListed?: boolean }} [options] Whether the entries belong to several messages. */
  constructor({ isListed = false } = {}) {
    super();
    this.#isListed = isListed;
  }

  connectedCallback() {
    if (!this.firstChild) fill(this, this.#list);
  }

  /** The number of entries. */
  get size() {
    return this.#rows.size;
  }

  /**
   * Replaces the entries.
   * @param {RelayEntry[]} entries
   */
  show(entries) {
    const wanted = new Set(entries.map(({ id }) => id));
    for (const [id, { row }] of this.#rows) {
      if (wanted.has(id)) continue;
      // The focus moves to an entry next to the removed one.
      const near = row.contains(document.activeElement) ? row.nextElementSibling ?? row.previousElementSibling : null;
      row.remove();
      near?.querySelector('summary')?.focus({ preventScroll: true });
      this.#rows.delete(id);
    }
    // The order of entries never changes, so those that stay are not moved.
    let next = this.#list.firstElementChild;
    for (const entry of entries) {
      const known = this.#rows.get(entry.id);
      known?.view.update(entry);
      if (known) next = known.row.nextElementSibling;
      else this.#list.insertBefore(this.#add(entry), next);
    }
    this.#list.hidden = this.#rows.size === 0;
  }

  /**
   * Adds older entries at the end. Returns the first element of them that can have the focus.
   * @param {RelayEntry[]} entries
   */
  addOlder(entries) {
    const rows = entries.filter(({ id }) => !this.#rows.has(id)).map((entry) => this.#add(entry));
    this.#list.append(...rows);
    return rows.at(0)?.querySelector('summary') ?? null;
  }

  /** @param {RelayEntry} entry */
  #add(entry) {
    const view = new RelayEntryView(entry, { isListed: this.#isListed });
    const row = h('li', {}, view);
    this.#rows.set(entry.id, { row, view });
    return row;
  }
}

customElements.define('relay-list', RelayList);
