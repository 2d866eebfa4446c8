// <queue-list>: entries of a queue, newest first. Updates keep the elements of the entries, so that the focus stays.

/** @import { QueueEntry } from '../types.js' */
/** @import { EntryKind } from './queue-entry.js' */

import { fill, h } from '../lib/dom.js';
import { QueueEntryView } from './queue-entry.js';

/** @template {QueueEntry} E */
export class QueueList extends HTMLElement {
  /** @type {Map<string, { row: HTMLElement, view: QueueEntryView<E> }>} */
  #rows = new Map();
  #kind;
  #isListed;
  #list;

  /**
   * @param {EntryKind<E>} kind
   * @param {{ isListed?: boolean }} [options] Whether the entries belong to several messages.
   */
  constructor(kind, { isListed = false } = {}) {
    super();
    this.#kind = kind;
    this.#isListed = isListed;
    this.#list = h('ol', { class: 'queue-entries sheet', 'aria-label': kind.label, hidden: true });
  }

  connectedCallback() {
    if (!this.firstChild) fill(this, this.#list);
  }

  /** The number of entries. */
  get size() {
    return this.#rows.size;
  }

  /**
   * Replaces the entries. Returns whether older ones were kept.
   * @param {E[]} entries
   * @param {{ keepsOlder?: boolean }} [options] Whether entries stay that are older than the last of these, if it is in the list.
   */
  show(entries, { keepsOlder = false } = {}) {
    const wanted = new Set(entries.map(({ id }) => id));
    const last = keepsOlder ? this.#rows.get(entries.at(-1)?.id ?? '')?.row : undefined;
    const isOlder = (/** @type {Node} */ row) => last !== undefined && (last.compareDocumentPosition(row) & Node.DOCUMENT_POSITION_FOLLOWING) !== 0;
    for (const [id, { row }] of this.#rows) {
      if (wanted.has(id) || isOlder(row)) continue;
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
    return this.#rows.size > entries.length;
  }

  /**
   * Adds older entries at the end. Returns the first element of them that can have the focus.
   * @param {E[]} entries
   */
  addOlder(entries) {
    const rows = entries.filter(({ id }) => !this.#rows.has(id)).map((entry) => this.#add(entry));
    this.#list.append(...rows);
    return rows.at(0)?.querySelector('summary') ?? null;
  }

  /** @param {E} entry */
  #add(entry) {
    const view = new QueueEntryView(entry, this.#kind, { isListed: this.#isListed });
    const row = h('li', {}, view);
    this.#rows.set(entry.id, { row, view });
    return row;
  }
}

customElements.define('queue-list', QueueList);
