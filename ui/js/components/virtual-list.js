// <virtual-list>: a long list of which only the visible rows are in the document. It is independent of what it shows:
//
//   list.label = 'Messages';                      the name for screen readers
//   list.key = (item) => item.id;                 identifies an item when others are added or removed
//   list.draw = (row, item) => { ... };           fills a row, which may have shown another item before
//   list.indexOf = (key) => 7;                    returns the index of an item, or -1; by default from a map
//   list.items = [...];                           the visible rows do not move when rows are added or removed above them
//   list.reset([...]);                            replaces all items and scrolls to the top
//   list.cursor = 'key';                          the current row; null for none
//   list.reveal();                                scrolls to the current row, later if it does not exist yet
//   list.refresh();                               redraws the visible rows
//   list.arrived(3);                              three items were added at the top: shown by a pill if the top is not visible
//   list.position = list.position;                the scroll position, to restore it later
//
// It is a listbox: the focus stays on the list, and the row at the cursor is its active descendant. With
// `list.link = (item) => '/target'` rows are links, which can be opened in another tab. With `list.isMultiple = true` several rows
// can be selected; `draw` sets `aria-selected`.
//
// Bubbling events: `list-move` (the cursor moved by key), `list-open` (click or Enter), `list-toggle` (Space), each with the item as
// detail; `list-extend` (the cursor moved and selects) with the keys `{ from, to }` as detail; and `list-visible`: other rows are
// visible, see `visibleItems`.
//
// All rows have the height that CSS sets for `.virtual-row`. The row at the cursor stays in the document even if it is not visible.

import { fill, set } from '../lib/dom.js';
import { VirtualPill } from './virtual-pill.js';
import { VirtualRows } from './virtual-rows.js';
import { VirtualScroll } from './virtual-scroll.js';

/** @template T */
export class VirtualList extends HTMLElement {
  /** @type {(item: T) => string} */
  key = String;
  /** @type {(row: HTMLElement, item: T) => void} */
  draw = (row, item) => fill(row, String(item));
  /** @type {(key: string) => number} */
  indexOf = (key) => this.#indexFromMap(key);
  /** @type {((item: T) => string) | null} */
  link = null;
  /** The visible items, and a few more. @type {T[]} */
  visibleItems = [];

  /** @type {readonly T[]} */
  #items = [];
  /** @type {Map<string, number> | null} */
  #indexes = null;
  /** @type {string | null} */
  #cursor = null;
  /** The last index of the cursor: it continues from there after its row is removed. */
  #lastCursorIndex = -1;
  /** @type {VirtualScroll<T>} */
  #scroll = new VirtualScroll(this);
  #port = this.#scroll.port;
  #pill = new VirtualPill();
  /** @type {VirtualRows<T>} */
  #rows = new VirtualRows(this.#scroll.space, this);
  #resized = new ResizeObserver(() => this.#measure());

  constructor() {
    super();
    const port = this.#port;
    port.addEventListener('scroll', () => this.#scrolled(), { passive: true });
    port.addEventListener('keydown', (event) => this.#pressed(event));
    port.addEventListener('click', (event) => this.#clicked(event));
    this.#pill.element.addEventListener('click', () => {
      this.toTop();
      this.focus();
    });
  }

  connectedCallback() {
    fill(this, this.#port, this.#pill.element);
    this.#resized.observe(this.#port);
    this.#measure();
  }

  disconnectedCallback() {
    this.#resized.disconnect();
  }

  /** @param {string} label */
  set label(label) {
    this.#port.setAttribute('aria-label', label);
  }

  /** @param {boolean} isMultiple */
  set isMultiple(isMultiple) {
    this.#port.ariaMultiSelectable = String(isMultiple);
  }

  /** @returns {readonly T[]} */
  get items() {
    return this.#items;
  }

  set items(items) {
    const [before, top] = [this.#items, this.#port.scrollTop];
    this.#setItems(items);
    if (top > 0) this.#scroll.keepPosition(before, top);
    this.#scroll.applyPending();
    this.#render();
  }

  /** @param {readonly T[]} items */
  reset(items) {
    this.#setItems(items);
    this.#lastCursorIndex = -1;
    this.toTop();
  }

  get cursor() {
    return this.#cursor;
  }

  set cursor(key) {
    if (key === this.#cursor) return;
    this.#cursor = key;
    this.#lastCursorIndex = -1;
    this.#render();
  }

  /** The key of the row to scroll to, if it does not exist yet. */
  get pendingKey() {
    return this.#scroll.pendingKey;
  }

  get position() {
    return this.#scroll.position;
  }

  set position(position) {
    this.#scroll.position = position;
    this.#scrolled();
  }

  toTop() {
    this.#port.scrollTop = 0;
    this.#scrolled();
  }

  /** @override */
  focus() {
    this.#port.focus({ preventScroll: true });
  }

  /** Scrolls by the minimum to show the row at the cursor. */
  reveal() {
    this.#scroll.reveal();
    this.#scrolled();
  }

  /**
   * Moves the cursor by a number of rows and dispatches an event. The first move goes to the first visible row.
   * @param {number} by
   * @param {boolean} [isExtending] True to select the rows in between.
   */
  move(by, isExtending = false) {
    const from = this.#cursor;
    const item = this.#items[Math.max(0, Math.min(this.#target(by), this.#items.length - 1))];
    if (item === undefined) return;
    this.#scroll.cancelPending();
    this.cursor = this.key(item);
    this.reveal();
    if (isExtending) this.#dispatch('list-extend', { from, to: this.#cursor });
    else this.#dispatch('list-move', item);
  }

  /** Redraws the visible rows, because the state of their items has changed. */
  refresh() {
    this.#rows.refresh();
  }

  /** @param {number} more */
  arrived(more) {
    if (!this.#scroll.isAtTop) this.#pill.add(more);
  }

  /**
   * Returns the item of the row that contains an element.
   * @param {EventTarget | null} target
   * @returns {T | undefined}
   */
  itemAt(target) {
    const row = target instanceof Element ? target.closest('.virtual-row') : null;
    return row instanceof HTMLElement ? this.#items[this.indexOf(row.dataset.key ?? '')] : undefined;
  }

  /** @param {number} by */
  #target(by) {
    const index = this.#cursorIndex();
    if (index >= 0) return index + by;
    if (this.#lastCursorIndex < 0) return this.#scroll.first;
    // The row after the removed one has its index now.
    return this.#lastCursorIndex + by - (by > 0 ? 1 : 0);
  }

  /** @param {readonly T[]} items */
  #setItems(items) {
    this.#items = items;
    this.#indexes = null;
    this.#scroll.updateHeight();
  }

  /** @param {string} key */
  #indexFromMap(key) {
    this.#indexes ??= new Map(this.#items.map((item, index) => [this.key(item), index]));
    return this.#indexes.get(key) ?? -1;
  }

  #cursorIndex() {
    return this.#cursor === null ? -1 : this.indexOf(this.#cursor);
  }

  #measure() {
    if (!this.isConnected) return;
    const height = this.#rows.height();
    if (height > 0 && height !== this.#scroll.height) {
      this.#scroll.resize(height);
      this.#rows.clear();
    }
    this.#scroll.applyPending();
    this.#render();
  }

  #scrolled() {
    if (this.#scroll.isAtTop && this.#pill.clear()) this.focus();
    this.#render();
  }

  /** Adds the visible rows to the document, in order, and removes the others. */
  #render() {
    if (this.#scroll.height === 0) return;
    const [first, end] = this.#scroll.range;
    const wanted = this.#items.slice(first, end).map((item, offset) => ({ key: this.key(item), item, index: first + offset }));
    const cursor = this.#cursorIndex();
    if (cursor >= 0) this.#lastCursorIndex = cursor;
    const cursorRow = { key: this.#cursor ?? '', item: this.#items[cursor], index: cursor };
    if (cursor >= 0 && cursor < first) wanted.unshift(cursorRow);
    if (cursor >= end) wanted.push(cursorRow);

    this.#rows.show(wanted, { height: this.#scroll.height, all: this.#items.length, cursor });
    const active = cursor < 0 ? undefined : this.#rows.at(cursorRow.key);
    set(this.#port, { 'aria-activedescendant': active?.id });
    this.#updateVisibleItems(first, end);
  }

  /**
   * @param {number} first
   * @param {number} end
   */
  #updateVisibleItems(first, end) {
    const [before, now] = [this.visibleItems, this.#items.slice(first, end)];
    if (now.length === before.length && now.every((item, index) => item === before[index])) return;
    this.visibleItems = now;
    this.dispatchEvent(new Event('list-visible', { bubbles: true }));
  }

  /** @param {KeyboardEvent} event */
  #pressed(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const isExtending = event.shiftKey && this.#port.ariaMultiSelectable === 'true';
    const [page, all] = [this.#scroll.page, this.#items.length];
    /** @type {Record<string, number>} */
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -all, End: all };
    const item = this.#items[this.#cursorIndex()];
    if (Object.hasOwn(steps, event.key)) this.move(steps[event.key], isExtending);
    else if (event.shiftKey || (event.key !== 'Enter' && event.key !== ' ')) return;
    else if (item !== undefined && !event.repeat) this.#dispatch(event.key === 'Enter' ? 'list-open' : 'list-toggle', item);
    event.preventDefault();
  }

  /** @param {MouseEvent} event */
  #clicked(event) {
    const item = this.itemAt(event.target);
    // The browser handles clicks that open the link elsewhere.
    if (item === undefined || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    this.focus();
    this.cursor = this.key(item);
    this.reveal();
    this.#dispatch('list-open', item);
  }

  /**
   * @param {string} name
   * @param {unknown} detail
   */
  #dispatch(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { bubbles: true, detail }));
  }
}

customElements.define('virtual-list', VirtualList);
