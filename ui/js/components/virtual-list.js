// <virtual-list>: a long list of which only the rows in sight are in the page. It knows nothing of what it shows:
//
//   list.label = 'Messages';                      what a screen reader calls it
//   list.isMultiple = true;                       several can be selected, which `draw` tells by `aria-selected`; may be left out
//   list.key = (item) => item.id;                 what makes an item itself, also after others came and went
//   list.draw = (row, item) => { ... };           fills a row, which may have shown something else before
//   list.link = (item) => '/where/it/leads';      rows are links then, which open in another tab as links do; may be left out
//   list.items = [...];                           what you read does not move when rows come and go above it
//   list.reset([...]);                            other items altogether, from the top
//   list.cursor = 'key';                          the row that is meant; null for none
//   list.refresh();                               draws the rows in sight once more
//   list.arrived(3);                              so many came on top: a pill says so, unless the top is in sight
//
// It tells, as bubbling events: `list-move` (the cursor went, by key), `list-open` (a click, or Enter), `list-toggle`
// (the blank), each with the item as detail, and `list-sight`: other rows are in sight, see `inSight`.
//
// All rows have the height that CSS gives to `.virtual-row`. The list is a listbox: the focus stays on it, and the cursor
// is its active descendant; that row stays in the page even out of sight.

import { fill, h, set } from '../lib/dom.js';
import { count } from '../lib/format.js';
import { VirtualRows } from './virtual-rows.js';

/** How many rows are drawn above and below those in sight, so that scrolling does not show gaps. */
const BEYOND = 8;

let lists = 0;

/** @template T */
export class VirtualList extends HTMLElement {
  /** @type {(item: T) => string} */
  key = String;
  /** @type {(row: HTMLElement, item: T) => void} */
  draw = (row, item) => fill(row, String(item));
  /** @type {((item: T) => string) | null} */
  link = null;
  /** The items in sight, and a little beyond. @type {T[]} */
  inSight = [];

  /** @type {T[]} */
  #items = [];
  /** Where the items stand, by key; made when somebody asks. @type {Map<string, number> | null} */
  #places = null;
  /** @type {string | null} */
  #cursor = null;
  /** Where the cursor was seen last: it goes on from there when its row is gone. */
  #cursorAt = -1;
  #height = 0;
  #new = 0;
  #name = `list-${++lists}`;
  #made = 0;
  #space = h('div', { class: 'virtual-space', role: 'presentation' });
  #port = h('div', { class: 'virtual-port', role: 'listbox', tabindex: 0 }, this.#space);
  #pill = h('button', { class: 'virtual-pill', type: 'button', hidden: true });
  /** @type {VirtualRows<T>} */
  #rows = new VirtualRows(this.#space, { make: () => this.#newRow(), draw: (row, { item }) => this.#fill(row, item) });
  #resized = new ResizeObserver(() => this.#measure());

  constructor() {
    super();
    this.#port.addEventListener('scroll', () => this.#scrolled(), { passive: true });
    this.#port.addEventListener('keydown', (event) => this.#pressed(event));
    this.#port.addEventListener('click', (event) => this.#clicked(event));
    this.#pill.addEventListener('click', () => {
      this.#port.scrollTop = 0;
      this.focus();
    });
  }

  connectedCallback() {
    fill(this, this.#port, this.#pill);
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

  /** @returns {T[]} */
  get items() {
    return this.#items;
  }

  set items(items) {
    const [before, top] = [this.#items, this.#port.scrollTop];
    this.#take(items);
    if (top > 0) this.#hold(before, top);
    this.#render();
  }

  /** @param {T[]} items */
  reset(items) {
    this.#take(items);
    this.#cursorAt = -1;
    this.#port.scrollTop = 0;
    this.#scrolled();
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

  /** @override */
  focus() {
    this.#port.focus({ preventScroll: true });
  }

  /** Scrolls as little as it takes to show the row at the cursor. */
  reveal() {
    const place = this.#cursorPlace();
    if (place < 0 || this.#height === 0) return;
    const [top, bottom] = [place * this.#height, (place + 1) * this.#height];
    if (top < this.#port.scrollTop) this.#port.scrollTop = top;
    else if (bottom > this.#port.scrollTop + this.#port.clientHeight) this.#port.scrollTop = bottom - this.#port.clientHeight;
    this.#scrolled();
  }

  /**
   * Moves the cursor by so many rows, and tells so; the first move goes to the first row in sight.
   * @param {number} by
   */
  move(by) {
    const item = this.#items[Math.max(0, Math.min(this.#target(by), this.#items.length - 1))];
    if (item === undefined) return;
    this.cursor = this.key(item);
    this.reveal();
    this.#tell('list-move', item);
  }

  /** Draws the rows in sight once more, because something about their items is different. */
  refresh() {
    for (const [key, row] of this.#rows.all()) this.draw(row, this.#items[this.#placeOf(key) ?? 0]);
  }

  /** @param {number} more */
  arrived(more) {
    if (this.#port.scrollTop <= 0) return;
    this.#new += more;
    this.#drawPill();
  }

  /**
   * The item that an element in a row belongs to.
   * @param {EventTarget | null} target
   * @returns {T | undefined}
   */
  itemAt(target) {
    const row = target instanceof Element ? target.closest('.virtual-row') : null;
    const place = row instanceof HTMLElement ? this.#placeOf(row.dataset.key ?? '') : undefined;
    return place === undefined ? undefined : this.#items[place];
  }

  /** @param {number} by */
  #target(by) {
    const place = this.#cursorPlace();
    if (place >= 0) return place + by;
    if (this.#cursorAt < 0) return Math.ceil(this.#port.scrollTop / (this.#height || 1));
    // The next row has moved up to where the cursor was.
    return this.#cursorAt + by - (by > 0 ? 1 : 0);
  }

  /** @param {T[]} items */
  #take(items) {
    this.#items = items;
    this.#places = null;
    this.#space.style.height = `${items.length * this.#height}px`;
  }

  /**
   * Scrolls so that the first row in sight that is still there stays where it was.
   * @param {T[]} before
   * @param {number} top
   */
  #hold(before, top) {
    const first = Math.floor(top / this.#height);
    for (let place = first; place < before.length; place += 1) {
      const now = this.#placeOf(this.key(before[place]));
      if (now === undefined) continue;
      const wanted = top + (now - place) * this.#height;
      if (wanted !== this.#port.scrollTop) this.#port.scrollTop = wanted;
      return;
    }
  }

  /** @param {string} key */
  #placeOf(key) {
    this.#places ??= new Map(this.#items.map((item, place) => [this.key(item), place]));
    return this.#places.get(key);
  }

  #cursorPlace() {
    return (this.#cursor === null ? undefined : this.#placeOf(this.#cursor)) ?? -1;
  }

  #measure() {
    if (!this.isConnected) return;
    const probe = h('div', { class: 'virtual-row' });
    this.#space.append(probe);
    const height = probe.offsetHeight;
    probe.remove();
    const first = this.#height > 0 ? this.#port.scrollTop / this.#height : 0;
    if (height > 0 && height !== this.#height) {
      this.#height = height;
      this.#space.style.height = `${this.#items.length * height}px`;
      this.#port.scrollTop = first * height;
      this.#rows.clear();
    }
    this.#render();
  }

  #scrolled() {
    if (this.#port.scrollTop <= 0 && this.#new > 0) {
      this.#new = 0;
      this.#drawPill();
    }
    this.#render();
  }

  #drawPill() {
    const hadFocus = document.activeElement === this.#pill;
    this.#pill.hidden = this.#new === 0;
    this.#pill.textContent = `${count(this.#new)} new`;
    if (hadFocus && this.#new === 0) this.focus();
  }

  /** Puts the rows in sight into the page, in their order, and takes away the others. */
  #render() {
    if (this.#height === 0) return;
    const first = Math.max(0, Math.floor(this.#port.scrollTop / this.#height) - BEYOND);
    const end = Math.min(this.#items.length, Math.ceil((this.#port.scrollTop + this.#port.clientHeight) / this.#height) + BEYOND);
    const wanted = this.#items.slice(first, end).map((item, offset) => ({ key: this.key(item), item, place: first + offset }));
    const cursor = this.#cursorPlace();
    if (cursor >= 0) this.#cursorAt = cursor;
    const there = { key: this.#cursor ?? '', item: this.#items[cursor], place: cursor };
    if (cursor >= 0 && cursor < first) wanted.unshift(there);
    if (cursor >= end) wanted.push(there);

    this.#rows.show(wanted, (row, { place }) => this.#position(row, place, place === cursor));
    const active = cursor < 0 ? undefined : this.#rows.at(there.key);
    set(this.#port, { 'aria-activedescendant': active?.id });
    this.#tellSight(first, end);
  }

  #newRow() {
    const row = h(this.link ? 'a' : 'div', { class: 'virtual-row', role: 'option', id: `${this.#name}-${++this.#made}` });
    if (this.link) set(row, { tabindex: -1, draggable: 'false' });
    return row;
  }

  /**
   * @param {HTMLElement} row
   * @param {T} item
   */
  #fill(row, item) {
    if (this.link) row.setAttribute('href', this.link(item));
    this.draw(row, item);
  }

  /**
   * @param {HTMLElement} row
   * @param {number} place
   * @param {boolean} isCursor
   */
  #position(row, place, isCursor) {
    const top = `${place * this.#height}px`;
    if (row.style.top !== top) row.style.top = top;
    row.ariaPosInSet = String(place + 1);
    row.ariaSetSize = String(this.#items.length);
    row.ariaCurrent = isCursor ? 'true' : null;
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

  /** @param {KeyboardEvent} event */
  #pressed(event) {
    if (event.ctrlKey || event.altKey || event.metaKey || event.shiftKey) return;
    const item = this.#items[this.#cursorPlace()];
    const page = Math.max(1, Math.floor(this.#port.clientHeight / this.#height) - 1);
    const all = this.#items.length;
    /** @type {Record<string, () => void>} */
    const acts = {
      ArrowDown: () => this.move(1),
      ArrowUp: () => this.move(-1),
      PageDown: () => this.move(page),
      PageUp: () => this.move(-page),
      Home: () => this.move(-all),
      End: () => this.move(all),
      Enter: () => item !== undefined && this.#tell('list-open', item),
      ' ': () => item !== undefined && this.#tell('list-toggle', item),
    };
    if (!Object.hasOwn(acts, event.key)) return;
    event.preventDefault();
    acts[event.key]();
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
   * @param {T} detail
   */
  #tell(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { bubbles: true, detail }));
  }
}

customElements.define('virtual-list', VirtualList);
