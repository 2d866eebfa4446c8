// <arrival-list>: arrivals in rows, newest on top, of which only those in sight are in the page. What arrives is drawn
// once per frame, however much it is; who reads further down is not moved. Which arrivals there are, others decide.

/** @import { Arrival } from '../lib/arrivals.js' */

import * as paths from '../lib/paths.js';
import { fill, h } from '../lib/dom.js';
import { address, clock, exact, size } from '../lib/format.js';

/** Rows beyond what is in sight, so that a flick of the wheel shows no gap. */
const MARGIN = 8;
/** How long a row looks new. */
const NEW = 1_500;

export class ArrivalList extends HTMLElement {
  /** @type {readonly Arrival[]} */
  #arrivals = [];
  /** @type {Map<Arrival, HTMLLIElement>} */
  #rows = new Map();
  /** @type {Arrival | null} */
  #current = null;
  #rowHeight = 0;
  #frame = 0;
  #list = h('ol', { class: 'arrivals', 'aria-label': 'Arrivals, newest first' });
  #sight = new ResizeObserver(() => {
    this.#rowHeight = 0;
    this.#drawSoon();
  });

  connectedCallback() {
    fill(this, this.#list);
    this.#sight.observe(this);
    this.addEventListener('scroll', () => this.#drawSoon(), { passive: true });
    this.addEventListener('focusin', ({ target }) => this.#follow(target));
  }

  disconnectedCallback() {
    this.#sight.disconnect();
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
  }

  /**
   * Shows these. What is read stays where it is, unless it is the top.
   * @param {readonly Arrival[]} arrivals
   */
  show(arrivals) {
    const height = this.#measured();
    const top = Math.floor(this.scrollTop / height);
    const read = top > 0 ? this.#arrivals[top] : undefined;
    const moved = read ? arrivals.indexOf(read) - top : 0;
    this.#arrivals = arrivals;
    this.#list.style.height = `${arrivals.length * height}px`;
    if (read && moved + top >= 0) this.scrollTop += moved * height;
    this.#draw();
  }

  /** Draws rows again that have changed, such as deleted ones. */
  refresh() {
    for (const [arrival, row] of this.#rows) if (row.classList.contains('gone') !== arrival.deleted) this.#fillRow(row, arrival);
  }

  /**
   * Goes to the next row, or the one before; to the first one when there is none yet.
   * @param {1 | -1} step
   */
  move(step) {
    if (this.#arrivals.length === 0) return;
    const now = this.#current ? this.#arrivals.indexOf(this.#current) : -1;
    const next = now < 0 ? 0 : Math.min(Math.max(now + step, 0), this.#arrivals.length - 1);
    this.#current = this.#arrivals[next];
    const [height, top] = [this.#measured(), next * this.#measured()];
    if (top < this.scrollTop) this.scrollTop = top;
    if (top + height > this.scrollTop + this.clientHeight) this.scrollTop = top + height - this.clientHeight;
    this.#draw();
    this.#link(this.#current)?.focus({ preventScroll: true });
  }

  /** Opens the row that was gone to last. */
  open() {
    if (this.#current) this.#link(this.#current)?.click();
  }

  toTop() {
    this.scrollTop = 0;
  }

  /** @param {Arrival} arrival */
  #link(arrival) {
    return /** @type {HTMLElement | null} */ (this.#rows.get(arrival)?.querySelector('.arrival-link'));
  }

  /** @param {EventTarget | null} target */
  #follow(target) {
    for (const [arrival, row] of this.#rows) if (target instanceof Node && row.contains(target)) this.#current = arrival;
  }

  #measured() {
    // The size depends on the width of the window; zero only while the page is not shown.
    this.#rowHeight ||= parseFloat(getComputedStyle(this.#list).getPropertyValue('line-height')) || 40;
    return this.#rowHeight;
  }

  #drawSoon() {
    this.#frame ||= requestAnimationFrame(() => this.#draw());
  }

  #draw() {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    const height = this.#measured();
    this.#list.style.height = `${this.#arrivals.length * height}px`;
    const first = Math.max(0, Math.floor(this.scrollTop / height) - MARGIN);
    const last = Math.min(this.#arrivals.length, Math.ceil((this.scrollTop + this.clientHeight) / height) + MARGIN);
    const indices = Array.from({ length: last - first }, (_, index) => first + index);
    // The row with the focus stays in the page, or the focus would be lost.
    const focused = this.#current && this.#rows.get(this.#current)?.contains(document.activeElement) ? this.#arrivals.indexOf(this.#current) : -1;
    if (focused >= 0 && focused < first) indices.unshift(focused);
    if (focused >= last) indices.push(focused);
    this.#place(indices, height);
  }

  /**
   * @param {number[]} indices Ascending.
   * @param {number} height
   */
  #place(indices, height) {
    const wanted = new Set(indices.map((index) => this.#arrivals[index]));
    for (const [arrival, row] of this.#rows) {
      if (wanted.has(arrival)) continue;
      row.remove();
      this.#rows.delete(arrival);
    }
    let place = this.#list.firstElementChild;
    for (const index of indices) {
      const row = this.#row(this.#arrivals[index]);
      row.style.top = `${index * height}px`;
      row.setAttribute('aria-posinset', String(index + 1));
      row.setAttribute('aria-setsize', String(this.#arrivals.length));
      if (row === place) place = place.nextElementSibling;
      else this.#list.insertBefore(row, place);
    }
  }

  /** @param {Arrival} arrival */
  #row(arrival) {
    const known = this.#rows.get(arrival);
    if (known) return known;
    const row = h('li', { class: performance.now() - arrival.told < NEW ? 'arrival new' : 'arrival' });
    this.#fillRow(row, arrival);
    this.#rows.set(arrival, row);
    return row;
  }

  /**
   * @param {HTMLLIElement} row
   * @param {Arrival} arrival
   */
  #fillRow(row, { message, deleted, gap }) {
    if (gap || !message) {
      row.classList.add('gap');
      fill(row, h('span', {}, 'The connection was lost here; some mail may be missing.'));
      return;
    }
    const { mailbox, id, from, subject, 'posix-millis': millis } = message;
    const focused = row.contains(document.activeElement);
    row.classList.toggle('gone', deleted);
    const link = h('a', { class: 'arrival-link cut', href: deleted ? null : paths.mailbox(mailbox, id), tabindex: deleted ? -1 : null, title: subject },
      deleted ? h('del', {}, subject || '(no subject)') : subject || '(no subject)', deleted && h('span', { class: 'hidden' }, ' (deleted)'));
    fill(row,
      h('time', { class: 'arrival-time soft number', title: exact(millis) }, clock(millis)),
      h('a', { class: 'arrival-mailbox cut', href: paths.mailbox(mailbox), title: mailbox }, mailbox),
      h('span', { class: 'arrival-from cut', title: from }, address(from).name || '(no sender)'),
      link,
      h('span', { class: 'arrival-size soft number' }, size(message.size)));
    if (focused) link.focus({ preventScroll: true });
  }
}

customElements.define('arrival-list', ArrivalList);
