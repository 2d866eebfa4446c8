// <virtual-list>: a long list of which only the rows in sight are in the page. It knows nothing of what it shows:
//
//   list.label = 'Messages';                      what a screen reader calls it
//   list.key = (item) => item.id;                 what makes an item itself, also after others came and went
//   list.draw = (row, item) => { ... };           fills a row, which may have shown something else before
//   list.place = (key) => 7;                      where the item of this key stands, -1 if nowhere; a map is made if left out
//   list.items = [...];                           what you read does not move when rows come and go above or below it
//   list.reset([...]);                            other items altogether, from the top
//   list.cursor = 'key';                          the row that is meant; null for none
//   list.reveal();                                scrolls to it; when its row is not there yet, as soon as it is
//   list.refresh();                               draws the rows in sight once more
//   list.arrived(3);                              so many came on top: a pill says so, unless the top is in sight
//   list.sight = list.sight;                      what is in sight, to come back to it later
//
// It is one of two kinds, which is to be said before the first items are given:
//
//   A listbox, unless something else is said: the focus stays on the list, and the row at the cursor is its active
//   descendant. With `list.link = (item) => '/where/it/leads'` rows are links, which open in another tab as links do. With
//   `list.isMultiple = true` several can be selected, which `draw` tells by `aria-selected`.
//
//   A list of rows that hold links of their own: `list.inner = '.subject'` says which of them has the focus when the cursor
//   moves there. The cursor follows the focus too, and clicks are the links' own. `list.open()` follows that link.
//
// It tells, as bubbling events: `list-move` (the cursor went, by key), `list-open` (a click, or Enter), `list-toggle` (the
// blank), each with the item as detail; `list-extend` (the cursor went, to select on the way) with `{ from, to }`, keys, as
// detail; and `list-sight`: other rows are in sight, see `inSight`. A list of links tells of `list-move` and `list-sight` only.
//
// All rows have the height that CSS gives to `.virtual-row`. The row at the cursor stays in the page even out of sight.

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
  place = (key) => this.#mapped(key);
  /** @type {((item: T) => string) | null} */
  link = null;
  /** The items in sight, and a little beyond. @type {T[]} */
  inSight = [];

  /** @type {string | null} */
  #inner = null;
  /** @type {readonly T[]} */
  #items = [];
  /** @type {Map<string, number> | null} */
  #places = null;
  /** @type {string | null} */
  #cursor = null;
  /** Where the cursor was seen last: it goes on from there when its row is gone. */
  #cursorAt = -1;
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
    port.addEventListener('keydown', (event) => this.#inner === null && this.#pressed(event));
    port.addEventListener('click', (event) => this.#inner === null && this.#clicked(event));
    port.addEventListener('focusin', ({ target }) => this.#focused(target));
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

  get inner() {
    return this.#inner;
  }

  set inner(selector) {
    this.#inner = selector;
    // The links are what can be reached by Tab then; the list takes the focus only when a row goes that had it.
    set(this.#port, selector === null ? { role: 'listbox', tabindex: 0 } : { role: 'list', tabindex: -1 });
  }

  /** @returns {readonly T[]} */
  get items() {
    return this.#items;
  }

  set items(items) {
    const [before, top] = [this.#items, this.#port.scrollTop];
    this.#take(items);
    if (top > 0) this.#scroll.hold(before, top);
    this.#scroll.settle();
    this.#render();
  }

  /** @param {readonly T[]} items */
  reset(items) {
    this.#take(items);
    this.#cursorAt = -1;
    this.toTop();
  }

  get cursor() {
    return this.#cursor;
  }

  set cursor(key) {
    if (key === this.#cursor) return;
    this.#cursor = key;
    this.#cursorAt = -1;
    this.#render();
  }

  get sight() {
    return this.#scroll.sight;
  }

  set sight(sight) {
    this.#scroll.sight = sight;
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

  /** Scrolls as little as it takes to show the row at the cursor. */
  reveal() {
    this.#scroll.reveal();
    this.#scrolled();
  }

  /**
   * Moves the cursor by so many rows, and tells so; the first move goes to the first row in sight.
   * @param {number} by
   * @param {boolean} [isExtending] Whether to select on the way.
   */
  move(by, isExtending = false) {
    const from = this.#cursor;
    const item = this.#items[Math.max(0, Math.min(this.#target(by), this.#items.length - 1))];
    if (item === undefined) return;
    this.#scroll.stay();
    this.cursor = this.key(item);
    this.reveal();
    this.#link()?.focus({ preventScroll: true });
    if (isExtending) this.#tell('list-extend', { from, to: this.#cursor });
    else this.#tell('list-move', item);
  }

  /** Follows the link of the row at the cursor. */
  open() {
    this.#link()?.click();
  }

  /** Draws the rows in sight once more, because something about their items is different. */
  refresh() {
    this.#rows.refresh();
  }

  /** @param {number} more */
  arrived(more) {
    if (!this.#scroll.isAtTop) this.#pill.add(more);
  }

  /**
   * The item that an element in a row belongs to.
   * @param {EventTarget | null} target
   * @returns {T | undefined}
   */
  itemAt(target) {
    const row = target instanceof Element ? target.closest('.virtual-row') : null;
    return row instanceof HTMLElement ? this.#items[this.place(row.dataset.key ?? '')] : undefined;
  }

  /** @param {number} by */
  #target(by) {
    const place = this.#cursorPlace();
    if (place >= 0) return place + by;
    if (this.#cursorAt < 0) return this.#scroll.first;
    // The next row has moved up to where the cursor was.
    return this.#cursorAt + by - (by > 0 ? 1 : 0);
  }

  /** @param {readonly T[]} items */
  #take(items) {
    this.#items = items;
    this.#places = null;
    this.#scroll.stretch();
  }

  /** @param {string} key */
  #mapped(key) {
    this.#places ??= new Map(this.#items.map((item, place) => [this.key(item), place]));
    return this.#places.get(key) ?? -1;
  }

  #cursorPlace() {
    return this.#cursor === null ? -1 : this.place(this.#cursor);
  }

  #link() {
    const row = this.#inner === null || this.#cursor === null ? undefined : this.#rows.at(this.#cursor);
    const link = row?.querySelector(this.#inner ?? '');
    return link instanceof HTMLElement ? link : null;
  }

  #measure() {
    if (!this.isConnected) return;
    const height = this.#rows.height();
    if (height > 0 && height !== this.#scroll.height) {
      this.#scroll.resize(height);
      this.#rows.clear();
    }
    this.#scroll.settle();
    this.#render();
  }

  #scrolled() {
    if (this.#scroll.isAtTop && this.#pill.clear()) this.focus();
    this.#render();
  }

  /** Puts the rows in sight into the page, in their order, and takes away the others. */
  #render() {
    if (this.#scroll.height === 0) return;
    const [first, end] = this.#scroll.range;
    const wanted = this.#items.slice(first, end).map((item, offset) => ({ key: this.key(item), item, place: first + offset }));
    const cursor = this.#cursorPlace();
    if (cursor >= 0) this.#cursorAt = cursor;
    const there = { key: this.#cursor ?? '', item: this.#items[cursor], place: cursor };
    if (cursor >= 0 && cursor < first) wanted.unshift(there);
    if (cursor >= end) wanted.push(there);

    const hadFocus = this.#scroll.space.contains(document.activeElement);
    this.#rows.show(wanted, { height: this.#scroll.height, all: this.#items.length, cursor });
    if (hadFocus && !this.#scroll.space.contains(document.activeElement)) this.focus();
    const active = cursor < 0 || this.#inner !== null ? undefined : this.#rows.at(there.key);
    set(this.#port, { 'aria-activedescendant': active?.id });
    this.#tellSight(first, end);
  }

  /**
   * @param {number} first
   * @param {number} end
   */
  #tellSight(first, end) {
    const [before, now] = [this.inSight, this.#items.slice(first, end)];
    if (now.length === before.length && now.every((item, place) => item === before[place])) return;
    this.inSight = now;
    this.dispatchEvent(new Event('list-sight', { bubbles: true }));
  }

  /** @param {EventTarget | null} target */
  #focused(target) {
    const item = this.#inner === null ? undefined : this.itemAt(target);
    if (item !== undefined) this.cursor = this.key(item);
  }

  /** @param {KeyboardEvent} event */
  #pressed(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const isExtending = event.shiftKey && this.#port.ariaMultiSelectable === 'true';
    const [page, all] = [this.#scroll.page, this.#items.length];
    /** @type {Record<string, number>} */
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -all, End: all };
    const item = this.#items[this.#cursorPlace()];
    if (Object.hasOwn(steps, event.key)) this.move(steps[event.key], isExtending);
    else if (event.shiftKey || (event.key !== 'Enter' && event.key !== ' ')) return;
    else if (item !== undefined && !event.repeat) this.#tell(event.key === 'Enter' ? 'list-open' : 'list-toggle', item);
    event.preventDefault();
  }

  /** @param {MouseEvent} event */
  #clicked(event) {
    const item = this.itemAt(event.target);
    // A link that is to be opened elsewhere is the browser's.
    if (item === undefined || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    this.focus();
    this.cursor = this.key(item);
    this.reveal();
    this.#tell('list-open', item);
  }

  /**
   * @param {string} name
   * @param {unknown} detail
   */
  #tell(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { bubbles: true, detail }));
  }
}

customElements.define('virtual-list', VirtualList);
